/* Adds changelog records to the activity table from their bytes. tierd.sense.changelogs.roll_up does the same one by one.
 *
 *     prepare(job, counts, file, fid, nid_text, nobody, most_clients, write_modes) -> capsule
 *         finds the fields of the classes JobCounts, DirectoryCounts and File. Raises TypeError for other classes.
 *     add(prepared, data, at, end, jobs, files, moved, known, most_files, paths) -> tuple[int, int, int]
 *         adds records from the byte `at` up to the byte `end`, until one needs Python. Returns the offset of that record,
 *         or `end`, the number of records, and of CLOSE records of known files. jobs: JobTable.by_id. files:
 *         CountTables.files. moved: OwnMoves.files. known: CountTables, for its methods. paths: whether JobCounts.places
 *         is valid.
 *
 * A record needs Python if its job, its directory or its client is new there, if it may be tierd's own, if a name
 * changes, or if its type is rare. Such a record has changed nothing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <string.h>
#include "../../../lustre/changelog/measure.h"

enum { T_CREATE = 1, T_MKDIR = 2, T_UNLINK = 6, T_RENAME = 8, T_OPEN = 10, T_CLOSE = 11, T_LAYOUT = 12 };
enum { JOB_NAME, JOB_TAGGED, JOB_PLACES, JOB_FIELDS };
enum { COUNTS_JOB, COUNTS_DIRECTORY, CREATES, OPENS, CLOSES, UNLINKS, WRITE_OPENS, LAST_TIME, FILES, SWEEP_AT, THERE, CLIENTS,
       COUNTS_FIELDS };
enum { FILE_COUNTS, FILE_DIRECTORY, FILE_NAME, CREATED, OPEN_COUNT, REOPENED, CREATED_AT, CLOSED_AT, FILE_FIELDS };
static const char *const job_fields[] = {"name", "tagged", "places"};
static const char *const counts_fields[] = {"job", "directory", "creates", "opens", "closes", "unlinks", "write_opens",
                                            "last_time", "files", "sweep_at", "there", "clients"};
static const char *const file_fields[] = {"counts", "directory", "name", "created", "open_count", "reopened", "created_at",
                                          "closed_at"};

typedef struct {
    PyTypeObject *job, *counts, *file, *fid;
    Py_ssize_t job_at[JOB_FIELDS], counts_at[COUNTS_FIELDS], file_at[FILE_FIELDS];
    PyObject *nid_text, *nobody;
    Py_ssize_t most_clients;
    unsigned long write_modes;
} Prepared;

#define CACHED 256 /* a power of two: FIDs of this call that later records repeat */

typedef struct {
    const Prepared *with;
    PyObject *jobs, *files, *moved, *known;
    Py_ssize_t most_files, closes;
    int paths;
    PyObject *fids[CACHED];
    PyObject *node; /* text of the last NID, whose bytes are below; NULL without one */
    const char *node_at;
    int node_large;
    PyObject *zero, *truth;
} Table;

typedef struct {
    const char *at;
    Measured form;
    const char *job_id, *nid; /* NULL without the extension */
    int nid_large;
    unsigned long open_mode;
    double seconds;
    PyObject *job, *target; /* owned */
} Event;

enum { FAILED = -1, LEFT = 0, ADDED = 1 };

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
#define OF_JOB(table, object, field) SLOT(object, (table)->with->job_at[field])
#define OF_COUNTS(table, object, field) SLOT(object, (table)->with->counts_at[field])
#define OF_FILE(table, object, field) SLOT(object, (table)->with->file_at[field])

static void
set(PyObject **slot, PyObject *value)
{
    Py_XSETREF(*slot, value);
}

/* Adds to a number in a field. */
static int
increase(PyObject **slot, long by)
{
    long value = *slot == NULL ? 0 : PyLong_AsLong(*slot);
    if (value == -1 && PyErr_Occurred())
        return FAILED;
    PyObject *sum = PyLong_FromLong(value + by);
    if (sum == NULL)
        return FAILED;
    set(slot, sum);
    return ADDED;
}

/* Sets the time of counts or of a file. */
static int
set_time(PyObject **slot, double seconds)
{
    PyObject *time = PyFloat_FromDouble(seconds);
    if (time == NULL)
        return FAILED;
    set(slot, time);
    return ADDED;
}

static PyObject *
fid(Table *to, const char *at)
{
    uint64_t mixed = (number(at, 8) ^ number(at + 8, 8) * 0x9e3779b97f4a7c15ull) * 0x9e3779b97f4a7c15ull;
    PyObject **slot = &to->fids[mixed >> 56 & (CACHED - 1)];
    if (*slot != NULL && memcmp(PyBytes_AS_STRING(*slot), at, FID) == 0)
        return Py_NewRef(*slot);
    PyObject *made = to->with->fid->tp_alloc(to->with->fid, FID);
    if (made == NULL)
        return NULL;
    memcpy(PyBytes_AS_STRING(made), at, FID);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    ((PyBytesObject *)made)->ob_shash = -1; /* not yet computed, as bytes.__new__ does for a subclass */
#pragma GCC diagnostic pop
    Py_XSETREF(*slot, Py_NewRef(made));
    return made;
}

/* Whether the client of a record needs no adding to these counts. */
static int
has_client(Table *to, const Event *event, PyObject *counts)
{
    if (event->nid == NULL)
        return ADDED;
    if (to->node == NULL || to->node_large != event->nid_large || memcmp(event->nid, to->node_at, NID_SIZE) != 0) {
        PyObject *text = PyObject_CallFunction(to->with->nid_text, "y#O", event->nid, (Py_ssize_t)NID_SIZE,
                                               event->nid_large ? Py_True : Py_False);
        if (text == NULL)
            return FAILED;
        set(&to->node, text);
        to->node_at = event->nid;
        to->node_large = event->nid_large;
    }
    PyObject *clients = OF_COUNTS(to, counts, CLIENTS);
    if (clients == NULL || !PyTuple_CheckExact(clients))
        return LEFT;
    if (PyTuple_GET_SIZE(clients) >= to->with->most_clients)
        return ADDED;
    int known = PySequence_Contains(clients, to->node);
    return known ? known : PyObject_RichCompareBool(to->node, to->with->nobody, Py_EQ);
}

static int
is_there(Table *to, PyObject *counts)
{
    if (counts == NULL || !Py_IS_TYPE(counts, to->with->counts) || OF_COUNTS(to, counts, THERE) != Py_True)
        return 0;
    PyObject *last = OF_COUNTS(to, counts, LAST_TIME);
    return last != NULL && PyFloat_CheckExact(last);
}

/* Finds the counts of the record's job in the directory that the record names, and takes a reference. */
static int
counts_in_parent(Table *to, const Event *event, PyObject **counts)
{
    PyObject *places = OF_JOB(to, event->job, JOB_PLACES);
    if (!to->paths || places == NULL || !PyDict_CheckExact(places))
        return LEFT;
    PyObject *parent = fid(to, event->at + 48);
    if (parent == NULL)
        return FAILED;
    PyObject *found = PyDict_GetItemWithError(places, parent);
    Py_DECREF(parent);
    if (!is_there(to, found))
        return PyErr_Occurred() ? FAILED : LEFT;
    *counts = Py_NewRef(found);
    return ADDED;
}

/* Returns the counts of a file, if they are still those of its directory; NULL otherwise. Takes no reference. */
static PyObject *
counts_of(Table *to, PyObject *file)
{
    PyObject *counts = OF_FILE(to, file, FILE_COUNTS);
    return is_there(to, counts) && OF_COUNTS(to, counts, COUNTS_DIRECTORY) == OF_FILE(to, file, FILE_DIRECTORY) ? counts : NULL;
}

static int
touch(Table *to, PyObject *counts, double seconds)
{
    PyObject **last = &OF_COUNTS(to, counts, LAST_TIME);
    return seconds > PyFloat_AS_DOUBLE(*last) ? set_time(last, seconds) : ADDED;
}

static PyObject *
new_file(Table *to, const Event *event, PyObject *counts)
{
    PyObject *file = to->with->file->tp_alloc(to->with->file, 0);
    if (file == NULL)
        return NULL;
    PyObject *time = PyFloat_FromDouble(event->seconds);
    OF_FILE(to, file, FILE_COUNTS) = Py_NewRef(counts);
    OF_FILE(to, file, FILE_DIRECTORY) = Py_NewRef(OF_COUNTS(to, counts, COUNTS_DIRECTORY));
    OF_FILE(to, file, FILE_NAME) = PyBytes_FromStringAndSize(event->form.name, (Py_ssize_t)event->form.name_size);
    OF_FILE(to, file, CREATED) = Py_NewRef(to->truth);
    OF_FILE(to, file, OPEN_COUNT) = Py_NewRef(to->zero);
    OF_FILE(to, file, REOPENED) = Py_NewRef(to->zero);
    OF_FILE(to, file, CREATED_AT) = time;
    OF_FILE(to, file, CLOSED_AT) = Py_XNewRef(time);
    if (time == NULL || OF_FILE(to, file, FILE_NAME) == NULL)
        Py_CLEAR(file);
    return file;
}

static int
call(PyObject *of, const char *method, PyObject *with)
{
    PyObject *name = PyUnicode_InternFromString(method);
    PyObject *result = name == NULL ? NULL
        : with == NULL ? PyObject_CallMethodNoArgs(of, name) : PyObject_CallMethodOneArg(of, name, with);
    Py_XDECREF(name);
    Py_XDECREF(result);
    return result == NULL ? FAILED : ADDED;
}

/* Puts a new file of these counts into the table, and into the list of the job in the directory. */
static int
keep(Table *to, const Event *event, PyObject *counts)
{
    PyObject *list = OF_COUNTS(to, counts, FILES), *sweep_at = OF_COUNTS(to, counts, SWEEP_AT);
    long most = sweep_at == NULL ? -1 : PyLong_AsLong(sweep_at);
    if (list == NULL || !PyList_CheckExact(list) || (most == -1 && PyErr_Occurred()))
        return PyErr_Occurred() ? FAILED : LEFT;
    PyObject *file = new_file(to, event, counts);
    if (file == NULL)
        return FAILED;
    PyObject_GC_UnTrack(file); /* it belongs to no cycle: counts lead to FIDs only. So the collector skips it */
    int well = PyDict_SetItem(to->files, event->target, file);
    Py_DECREF(file);
    if (well < 0 || touch(to, counts, event->seconds) < 0 || increase(&OF_COUNTS(to, counts, CREATES), 1) < 0)
        return FAILED;
    if (PyDict_GET_SIZE(to->files) > to->most_files && call(to->known, "forget_first_files", NULL) < 0)
        return FAILED;
    list = OF_COUNTS(to, counts, FILES);
    if (PyList_Append(list, event->target) < 0)
        return FAILED;
    return PyList_GET_SIZE(list) > most ? call(to->known, "sweep", counts) : ADDED;
}

static int
create(Table *to, const Event *event)
{
    PyObject *counts = NULL;
    int done = counts_in_parent(to, event, &counts);
    if (done == ADDED)
        done = has_client(to, event, counts);
    if (done == ADDED)
        done = keep(to, event, counts);
    Py_XDECREF(counts);
    return done;
}

/* Finds the file of a record, and takes a reference; *file is NULL if the table lacks it. */
static int
file_of(Table *to, const Event *event, PyObject **file)
{
    PyObject *found = PyDict_GetItemWithError(to->files, event->target);
    if (found == NULL)
        return PyErr_Occurred() ? FAILED : ADDED;
    if (!Py_IS_TYPE(found, to->with->file))
        return LEFT;
    *file = Py_NewRef(found);
    return ADDED;
}

static int
closed(Table *to, const Event *event, PyObject *file)
{
    PyObject *counts = counts_of(to, file), **open_count = &OF_FILE(to, file, OPEN_COUNT);
    PyObject *name = OF_JOB(to, event->job, JOB_NAME);
    if (counts == NULL || name == NULL || OF_COUNTS(to, counts, COUNTS_JOB) == NULL)
        return LEFT;
    int own = PyObject_RichCompareBool(OF_COUNTS(to, counts, COUNTS_JOB), name, Py_EQ); /* not of a client thread, later */
    int open = *open_count == NULL ? 0 : PyObject_IsTrue(*open_count);
    if (own < 0 || open < 0 || (open && increase(open_count, -1) < 0)
        || set_time(&OF_FILE(to, file, CLOSED_AT), event->seconds) < 0 || (own && touch(to, counts, event->seconds) < 0))
        return FAILED;
    to->closes++;
    return increase(&OF_COUNTS(to, counts, CLOSES), 1);
}

static int
unlinked(Table *to, const Event *event, PyObject *file)
{
    PyObject *counts = NULL;
    int done = ADDED;
    if (file == NULL)
        done = counts_in_parent(to, event, &counts);
    else if ((counts = Py_XNewRef(counts_of(to, file))) == NULL)
        done = LEFT;
    if (done == ADDED)
        done = has_client(to, event, counts);
    if (done == ADDED && ((file != NULL && PyDict_DelItem(to->files, event->target) < 0)
                          || touch(to, counts, event->seconds) < 0 || increase(&OF_COUNTS(to, counts, UNLINKS), 1) < 0))
        done = FAILED;
    Py_XDECREF(counts);
    return done;
}

static int
opened(Table *to, const Event *event, PyObject *file)
{
    PyObject *counts = counts_of(to, file), *name = OF_JOB(to, event->job, JOB_NAME);
    if (counts == NULL || name == NULL || OF_COUNTS(to, counts, COUNTS_JOB) == NULL)
        return LEFT;
    int done = PyObject_RichCompareBool(OF_COUNTS(to, counts, COUNTS_JOB), name, Py_EQ);
    if (done != ADDED)
        return done;
    PyObject *closed_at = OF_FILE(to, file, CLOSED_AT), *created_at = OF_FILE(to, file, CREATED_AT);
    if (closed_at == NULL || created_at == NULL || !PyFloat_CheckExact(closed_at) || !PyFloat_CheckExact(created_at))
        return LEFT;
    int by_create = OF_FILE(to, file, CREATED) == Py_True /* the open that created the file */
        && PyFloat_AS_DOUBLE(closed_at) == PyFloat_AS_DOUBLE(created_at);
    if (!by_create && (done = has_client(to, event, counts)) != ADDED)
        return done;
    if (touch(to, counts, event->seconds) < 0 || increase(&OF_FILE(to, file, OPEN_COUNT), 1) < 0)
        return FAILED;
    if (by_create)
        return ADDED;
    if (increase(&OF_COUNTS(to, counts, OPENS), 1) < 0 || increase(&OF_FILE(to, file, REOPENED), 1) < 0)
        return FAILED;
    return event->open_mode & to->with->write_modes ? increase(&OF_COUNTS(to, counts, WRITE_OPENS), 1) : ADDED;
}

static int
handle(Table *to, const Event *event)
{
    PyObject *file = NULL;
    if (event->form.type == T_CREATE)
        return create(to, event);
    int done = file_of(to, event, &file);
    if (done == ADDED && event->form.type == T_UNLINK)
        done = unlinked(to, event, file);
    else if (done == ADDED && event->form.type == T_CLOSE)
        done = file == NULL ? ADDED : closed(to, event, file);
    else if (done == ADDED)
        done = file == NULL ? LEFT : opened(to, event, file);
    Py_XDECREF(file);
    return done;
}

/* Finds the extensions of a record whose form has been measured. */
static void
find_extensions(Event *event)
{
    const char *at = event->at + HEADER + (event->form.extensions & RENAME ? 2 * FID : 0);
    uint64_t extra = event->form.extra;
    event->job_id = event->form.extensions & JOB_ID ? at : NULL;
    at += (event->form.extensions & JOB_ID ? JOB_ID_SIZE : 0) + (event->form.extensions & EXTRA ? 8 : 0);
    at += extra & OWNER ? 16 : 0;
    event->nid = extra & NID ? at : NULL;
    event->nid_large = (extra & NID_LARGE) != 0;
    at += extra & NID ? NID_SIZE : 0;
    event->open_mode = extra & OPEN ? (unsigned long)number(at, 4) : 0;
}

/* Finds the known job of a record, which is surely not tierd's own, and takes a reference. */
static int
find_job(Table *to, Event *event)
{
    size_t size = event->job_id == NULL ? 0 : strnlen(event->job_id, JOB_ID_SIZE);
    PyObject *id = PyBytes_FromStringAndSize(event->job_id, (Py_ssize_t)size);
    if (id == NULL)
        return FAILED;
    PyObject *job = PyDict_GetItemWithError(to->jobs, id);
    Py_DECREF(id);
    if (job == NULL || !Py_IS_TYPE(job, to->with->job) || OF_JOB(to, job, JOB_TAGGED) != Py_False)
        return PyErr_Occurred() ? FAILED : LEFT;
    event->job = Py_NewRef(job);
    return ADDED;
}

static int
find_target(Table *to, Event *event)
{
    event->target = fid(to, event->at + 32);
    if (event->target == NULL)
        return FAILED;
    Py_ssize_t moved = PyObject_Size(to->moved);
    int ours = moved > 0 ? PySequence_Contains(to->moved, event->target) : (int)moved;
    return ours < 0 ? FAILED : ours ? LEFT : ADDED;
}

static int
add_one(Table *to, const char *at, const Measured *form)
{
    uint64_t type = form->type;
    if (type == T_MKDIR || type == T_RENAME || type == T_LAYOUT || form->extensions & RENAME)
        return LEFT;
    if (type != T_CREATE && type != T_UNLINK && type != T_OPEN && type != T_CLOSE)
        return ADDED;
    Event event = {.at = at, .form = *form, .seconds = record_time(at)};
    find_extensions(&event);
    int done = find_job(to, &event);
    if (done == ADDED)
        done = find_target(to, &event);
    if (done == ADDED)
        done = handle(to, &event);
    Py_XDECREF(event.job);
    Py_XDECREF(event.target);
    return done;
}

static PyObject *
add(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    const Prepared *with = count == 10 ? PyCapsule_GetPointer(args[0], "roll_up") : NULL;
    if (with == NULL || !PyBytes_Check(args[1]) || !PyDict_CheckExact(args[4]) || !PyDict_CheckExact(args[5])) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "add(prepared, data: bytes, at: int, end: int, jobs: dict, files: dict, moved, known,"
                                         " most_files: int, paths: bool)");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(args[2]), end = PyLong_AsSsize_t(args[3]), most_files = PyLong_AsSsize_t(args[8]);
    int paths = PyObject_IsTrue(args[9]), done = ADDED;
    if (PyErr_Occurred())
        return NULL;
    if (at < 0 || end < at || end > PyBytes_GET_SIZE(args[1])) {
        PyErr_SetString(PyExc_ValueError, "add: the records must lie in the data");
        return NULL;
    }
    Table to = {.with = with, .jobs = args[4], .files = args[5], .moved = args[6], .known = args[7], .most_files = most_files,
                .paths = paths, .zero = PyLong_FromLong(0), .truth = Py_NewRef(Py_True)};
    const char *data = PyBytes_AS_STRING(args[1]);
    Py_ssize_t added = 0;
    Measured form;
    for (; at < end && measured(data + at, end - at, &form) && (done = add_one(&to, data + at, &form)) == ADDED; added++)
        at += form.size;
    for (int i = 0; i < CACHED; i++)
        Py_XDECREF(to.fids[i]);
    Py_XDECREF(to.node);
    Py_XDECREF(to.zero);
    Py_DECREF(to.truth);
    return done == FAILED ? NULL : Py_BuildValue("nnn", at, added, to.closes);
}

/* Finds the offsets of the fields of a class with slots. Returns 0 if its fields are others, or are in another form. */
static int
find_fields(PyObject *type, const char *const *names, int count, Py_ssize_t *offsets)
{
    for (int i = 0; i < count; i++) {
        PyObject *member = PyObject_GetAttrString(type, names[i]);
        int known = member != NULL && Py_IS_TYPE(member, &PyMemberDescr_Type)
            && PyDescr_TYPE(member) == (PyTypeObject *)type
            && ((PyMemberDescrObject *)member)->d_member->type == T_OBJECT_EX;
        if (known)
            offsets[i] = ((PyMemberDescrObject *)member)->d_member->offset;
        Py_XDECREF(member);
        if (!known) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

static void
release(PyObject *capsule)
{
    Prepared *with = PyCapsule_GetPointer(capsule, "roll_up");
    Py_DECREF(with->job);
    Py_DECREF(with->counts);
    Py_DECREF(with->file);
    Py_DECREF(with->fid);
    Py_DECREF(with->nid_text);
    Py_DECREF(with->nobody);
    PyMem_Free(with);
}

static PyObject *
prepare(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *job, *counts, *file, *fid;
    PyObject *nid_text, *nobody;
    Py_ssize_t most_clients;
    unsigned long write_modes;
    if (!PyArg_ParseTuple(args, "O!O!O!O!OUnk", &PyType_Type, &job, &PyType_Type, &counts, &PyType_Type, &file, &PyType_Type,
                          &fid, &nid_text, &nobody, &most_clients, &write_modes))
        return NULL;
    Prepared *with = PyMem_Calloc(1, sizeof *with);
    if (with == NULL)
        return PyErr_NoMemory();
    if (!find_fields((PyObject *)job, job_fields, JOB_FIELDS, with->job_at)
        || !find_fields((PyObject *)counts, counts_fields, COUNTS_FIELDS, with->counts_at)
        || !find_fields((PyObject *)file, file_fields, FILE_FIELDS, with->file_at)
        || file->tp_basicsize != (Py_ssize_t)(sizeof(PyObject) + FILE_FIELDS * sizeof(PyObject *))
        || !PyType_HasFeature(file, Py_TPFLAGS_HAVE_GC) || !PyType_IsSubtype(fid, &PyBytes_Type)) {
        PyMem_Free(with);
        PyErr_SetString(PyExc_TypeError, "prepare: the classes have other fields");
        return NULL;
    }
    with->job = (PyTypeObject *)Py_NewRef(job);
    with->counts = (PyTypeObject *)Py_NewRef(counts);
    with->file = (PyTypeObject *)Py_NewRef(file);
    with->fid = (PyTypeObject *)Py_NewRef(fid);
    with->nid_text = Py_NewRef(nid_text);
    with->nobody = Py_NewRef(nobody);
    with->most_clients = most_clients;
    with->write_modes = write_modes;
    PyObject *capsule = PyCapsule_New(with, "roll_up", release);
    if (capsule == NULL)
        PyMem_Free(with); /* and the references, when there is no memory for a capsule */
    return capsule;
}

static PyMethodDef methods[] = {
    {"prepare", prepare, METH_VARARGS, "Find the fields of the classes of the table."},
    {"add", (PyCFunction)(void (*)(void))add, METH_FASTCALL,
     "Add records; returns the offset of the first that was not added, the number of records, and of CLOSE records."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tierd.sense.changelogs._roll_up", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__roll_up(void)
{
    return PyModule_Create(&module);
}
