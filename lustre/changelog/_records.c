/* Decodes many changelog records at once. lustre.changelog.decode makes the same Record tuples one by one.
 *
 *     take(data, at, records, most, make) -> int
 *         appends records from the byte `at` on, until the list has `most` records. Returns the offset of the first
 *         record that it did not decode. Python handles the rest: an incomplete record, a name that is too long, unknown
 *         extra flags or an unknown type. make is (Record, Fid, types by number, text of a NID).
 *
 *     measure(data, at, most) -> tuple[int, int, int, float, float]
 *         measures at most `most` records from the byte `at` on. Returns the offset after them, their number, the index of
 *         the last one (0 without records), the oldest and the newest time. It stops before an incomplete record, a name
 *         that is too long and unknown extra flags.
 *
 * lustre.changelog.decode describes the form of a record. All numbers are little-endian. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include "measure.h"

#define KNOWN 256 /* a power of two: number of cached FIDs, job ids and NIDs, which later records repeat */

/* The fields of a Record, in its order. */
enum { INDEX, TYPE, TIME, FLAGS, TARGET, PARENT, NAME, SOURCE, SOURCE_PARENT, SOURCE_NAME, JOB, UID, GID, NODE, OPEN_MODE,
       XATTR_NAME, PREVIOUS, NANOSECOND, FIELDS };

typedef struct {
    PyTypeObject *record, *fid;
    PyObject *types, *nid_text;
    PyObject *empty_bytes, *empty_text;
    PyObject *fields; /* the current record, which this call owns until it is in the list */
    PyObject *fids[KNOWN], *jobs[KNOWN];
    PyObject *node;      /* NID of the previous record, which most records share, and its bytes below */
    const char *node_at; /* NULL without a previous NID */
    int node_large;
    PyObject *owners[2];      /* uid and gid of the previous record, which most records share; NULL without one */
    uint64_t owner_numbers[2]; /* their values */
} Maker;

static unsigned
place(const char *at, size_t size)
{
    uint64_t mixed = 0;
    for (; size >= 8; at += 8, size -= 8)
        mixed = (mixed ^ number(at, 8)) * 0x9e3779b97f4a7c15ull, mixed ^= mixed >> 29;
    return (mixed ^ mixed >> 32) & (KNOWN - 1);
}

/* Stores a value in its field and takes its reference; returns 0 if the value is NULL. */
static int
put(Maker *to, int field, PyObject *value)
{
    if (value == NULL)
        return 0;
    PyTuple_SET_ITEM(to->fields, field, value);
    return 1;
}

static int
put_number(Maker *to, int field, uint64_t value)
{
    return put(to, field, PyLong_FromUnsignedLongLong(value));
}

/* Returns one shared object for all records of this call with the same bytes, while the cache holds it. */
static PyObject *
remembered(PyObject **slot, const char *at, size_t size)
{
    PyObject *known = *slot;
    if (known == NULL || (size_t)PyBytes_GET_SIZE(known) != size || memcmp(PyBytes_AS_STRING(known), at, size) != 0)
        return NULL;
    return Py_NewRef(known);
}

/* Marks the hash as not yet computed, as bytes.__new__ does for a subclass. The field is deprecated for other uses. */
static void
forget_hash(PyBytesObject *bytes)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    bytes->ob_shash = -1;
#pragma GCC diagnostic pop
}

static PyObject *
fid(Maker *to, const char *at)
{
    PyObject **slot = &to->fids[place(at, FID)], *made = remembered(slot, at, FID);
    if (made != NULL)
        return made;
    made = to->fid->tp_alloc(to->fid, FID);
    if (made == NULL)
        return NULL;
    memcpy(PyBytes_AS_STRING(made), at, FID);
    forget_hash((PyBytesObject *)made);
    Py_XSETREF(*slot, Py_NewRef(made));
    return made;
}

static PyObject *
padded(const char *at, size_t size)
{
    return PyBytes_FromStringAndSize(at, strnlen(at, size));
}

static PyObject *
job_id(Maker *to, const char *at)
{
    size_t size = strnlen(at, JOB_ID_SIZE);
    char clean[JOB_ID_SIZE] = {0}; /* bytes after the NUL are left over from other ids */
    memcpy(clean, at, size);
    PyObject **slot = &to->jobs[place(clean, JOB_ID_SIZE)], *made = remembered(slot, at, size);
    if (made == NULL && (made = PyBytes_FromStringAndSize(at, size)) != NULL)
        Py_XSETREF(*slot, Py_NewRef(made));
    return made;
}

static PyObject *
node(Maker *to, const char *at, int large)
{
    if (to->node_at == NULL || large != to->node_large || memcmp(at, to->node_at, NID_SIZE) != 0) {
        to->node_at = NULL;
        PyObject *text = PyObject_CallFunction(to->nid_text, "y#O", at, (Py_ssize_t)NID_SIZE, large ? Py_True : Py_False);
        if (text == NULL)
            return NULL;
        Py_XSETREF(to->node, text);
        to->node_at = at;
        to->node_large = large;
    }
    return Py_NewRef(to->node);
}

/* Returns the uid or gid of a record, as the object of the previous record if it is equal. */
static PyObject *
owner(Maker *to, int which, const char *at)
{
    uint64_t value = number(at, 8);
    if (to->owners[which] == NULL || to->owner_numbers[which] != value) {
        Py_XSETREF(to->owners[which], PyLong_FromUnsignedLongLong(value));
        to->owner_numbers[which] = value;
    }
    return Py_XNewRef(to->owners[which]);
}

static int
put_header(Maker *to, const char *at)
{
    uint64_t nanosecond = number(at + 24, 8) & ((1u << SECOND_SHIFT) - 1);
    return put(to, TYPE, Py_NewRef(PyTuple_GET_ITEM(to->types, number(at + 4, 4))))
        && put_number(to, FLAGS, number(at + 2, 2) & ((1u << FLAG_BITS) - 1))
        && put_number(to, INDEX, number(at + 8, 8))
        && put_number(to, PREVIOUS, number(at + 16, 8))
        && put(to, TIME, PyFloat_FromDouble(record_time(at)))
        && put_number(to, NANOSECOND, nanosecond)
        && put(to, TARGET, fid(to, at + 32))
        && put(to, PARENT, fid(to, at + 48));
}

static int
put_extra(Maker *to, const char *at, uint64_t extra)
{
    int well = 1;
    if (extra & OWNER) {
        well = well && put(to, UID, owner(to, 0, at)) && put(to, GID, owner(to, 1, at + 8));
        at += 16;
    } else
        well = well && put(to, UID, Py_NewRef(Py_None)) && put(to, GID, Py_NewRef(Py_None));
    well = well && put(to, NODE, extra & NID ? node(to, at, (extra & NID_LARGE) != 0) : Py_NewRef(to->empty_text));
    at += extra & NID ? NID_SIZE : 0;
    well = well && put(to, OPEN_MODE, extra & OPEN ? PyLong_FromUnsignedLongLong(number(at, 4)) : Py_NewRef(Py_None));
    at += extra & OPEN ? 4 : 0;
    return well && put(to, XATTR_NAME, extra & XATTR ? padded(at, XATTR_SIZE) : Py_NewRef(to->empty_bytes));
}

/* Decodes the name. A rename has the new name, a NUL and the old name. */
static int
put_names(Maker *to, const char *at, size_t size, int renamed)
{
    const char *nul = renamed ? memchr(at, 0, size) : NULL;
    size_t first = nul == NULL ? size : (size_t)(nul - at);
    return put(to, NAME, PyBytes_FromStringAndSize(at, first))
        && put(to, SOURCE_NAME, nul == NULL ? Py_NewRef(to->empty_bytes) : PyBytes_FromStringAndSize(nul + 1, size - first - 1));
}

/* Decodes the record at this place, whose form has been measured. */
static PyObject *
record(Maker *to, const char *at, unsigned extensions, uint64_t extra, const char *name, size_t name_size)
{
    to->fields = to->record->tp_alloc(to->record, FIELDS);
    int well = to->fields != NULL && put_header(to, at) && put_names(to, name, name_size, extensions & RENAME);
    at += HEADER;
    well = well && put(to, SOURCE, extensions & RENAME ? fid(to, at) : Py_NewRef(Py_None))
        && put(to, SOURCE_PARENT, extensions & RENAME ? fid(to, at + FID) : Py_NewRef(Py_None));
    at += extensions & RENAME ? 2 * FID : 0;
    well = well && put(to, JOB, extensions & JOB_ID ? job_id(to, at) : Py_NewRef(to->empty_bytes));
    at += extensions & JOB_ID ? JOB_ID_SIZE : 0;
    well = well && put_extra(to, at + (extensions & EXTRA ? 8 : 0), extra);
    if (!well)
        Py_CLEAR(to->fields);
    return to->fields;
}

/* Returns the offset of the first record that was not decoded, or -1. */
static Py_ssize_t
taken(Maker *to, const char *data, Py_ssize_t size, Py_ssize_t at, PyObject *records, Py_ssize_t most)
{
    Measured form;
    while (PyList_GET_SIZE(records) < most && measured(data + at, size - at, &form)
           && form.type < (uint64_t)PyTuple_GET_SIZE(to->types)) {
        PyObject *made = record(to, data + at, form.extensions, form.extra, form.name, form.name_size);
        int failed = made == NULL || PyList_Append(records, made) < 0;
        Py_XDECREF(made);
        if (failed)
            return -1;
        at += form.size;
    }
    return at;
}

static void
forget(Maker *to)
{
    for (int i = 0; i < KNOWN; i++) {
        Py_XDECREF(to->fids[i]);
        Py_XDECREF(to->jobs[i]);
    }
    Py_XDECREF(to->node);
    Py_XDECREF(to->empty_bytes);
    Py_XDECREF(to->empty_text);
    Py_XDECREF(to->owners[0]);
    Py_XDECREF(to->owners[1]);
}

static int
is_make(PyObject *make)
{
    return PyTuple_Check(make) && PyTuple_GET_SIZE(make) == 4
        && PyType_Check(PyTuple_GET_ITEM(make, 0)) && PyType_Check(PyTuple_GET_ITEM(make, 1))
        && PyType_IsSubtype((PyTypeObject *)PyTuple_GET_ITEM(make, 0), &PyTuple_Type)
        && PyType_IsSubtype((PyTypeObject *)PyTuple_GET_ITEM(make, 1), &PyBytes_Type)
        && PyTuple_Check(PyTuple_GET_ITEM(make, 2));
}

static PyObject *
take(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || !PyBytes_Check(args[0]) || !PyList_Check(args[2]) || !is_make(args[4])) {
        PyErr_SetString(PyExc_TypeError, "take(data: bytes, at: int, records: list, most: int, make: tuple)");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(args[1]), most = PyLong_AsSsize_t(args[3]), size = PyBytes_GET_SIZE(args[0]);
    if (PyErr_Occurred())
        return NULL;
    if (at < 0 || at > size) {
        PyErr_SetString(PyExc_ValueError, "take: the first byte must lie in the data");
        return NULL;
    }
    Maker to = {
        (PyTypeObject *)PyTuple_GET_ITEM(args[4], 0), (PyTypeObject *)PyTuple_GET_ITEM(args[4], 1),
        PyTuple_GET_ITEM(args[4], 2), PyTuple_GET_ITEM(args[4], 3), .empty_bytes = PyBytes_FromStringAndSize("", 0),
        .empty_text = PyUnicode_FromStringAndSize("", 0)};
    at = to.empty_bytes == NULL || to.empty_text == NULL
        ? -1 : taken(&to, PyBytes_AS_STRING(args[0]), size, at, args[2], most);
    forget(&to);
    return at < 0 ? NULL : PyLong_FromSsize_t(at);
}

static PyObject *
measure(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "measure(data: bytes, at: int, most: int)");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(args[1]), most = PyLong_AsSsize_t(args[2]), size = PyBytes_GET_SIZE(args[0]);
    if (PyErr_Occurred())
        return NULL;
    if (at < 0 || at > size) {
        PyErr_SetString(PyExc_ValueError, "measure: the first byte must lie in the data");
        return NULL;
    }
    const char *data = PyBytes_AS_STRING(args[0]);
    Py_ssize_t found = 0;
    uint64_t last = 0;
    double oldest = Py_HUGE_VAL, newest = 0;
    Measured form;
    for (; found < most && measured(data + at, size - at, &form); found++, at += form.size) {
        double time = record_time(data + at);
        last = number(data + at + 8, 8);
        oldest = time < oldest ? time : oldest;
        newest = time > newest ? time : newest;
    }
    return Py_BuildValue("nnKdd", at, found, (unsigned long long)last, oldest, newest);
}

static PyMethodDef methods[] = {
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, "Append records to a list; returns the offset after the last."},
    {"measure", (PyCFunction)(void (*)(void))measure, METH_FASTCALL,
     "Returns the offset after some records, their number, the index of the last, the oldest and the newest time."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "lustre.changelog._records", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__records(void)
{
    return PyModule_Create(&module);
}
