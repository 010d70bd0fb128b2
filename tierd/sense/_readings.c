/* Makes the loads of many jobs on OSTs from two readings. tierd.sense.readings.fast_ost_load makes them one by one.
 *
 *     loads(changed, form, positions, others, uppers, max_operations, max_bytes, known, make) -> list[load | None]
 *         changed: tuples of (target, job), an earlier and a later entry, whose attribute `numbers` are packed doubles of
 *         one form. form is (numbers, index of the first sum, index of the first size). positions are the indexes of read
 *         and written bytes, reads and writes by two names, and the times of reads and writes; -1 for none. others: indexes
 *         of all other operations. uppers: sizes of RPCs. known: sizes by their counts; equal ones are one object.
 *         make is (JobLoad, sizes of a form without sizes). None for an entry that is not regular. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

enum { READ_BYTES, WRITE_BYTES, READS, WRITES, READ_CALLS, WRITE_CALLS, READ_USEC, WRITE_USEC, POSITIONS };
enum { TARGET, JOB, LOAD_READ_BYTES, LOAD_WRITE_BYTES, LOAD_READS, LOAD_WRITES, LOAD_OTHERS, LOAD_USEC, SIZES, FIELDS };
enum { MOST = 1024 }; /* numbers of an entry */

typedef struct {
    Py_ssize_t width, sums_at, sizes_at;
    Py_ssize_t at[POSITIONS], others[MOST], other_count;
    PyObject *uppers, *known, *no_sizes, *zero, *numbers;
    PyTypeObject *load;
    double max_operations, max_bytes;
    double more[MOST];
} Reader;

/* The sum as the function `sum` computes it. */
static double
total(const double *values, Py_ssize_t count)
{
    double sum = 0, lost = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
#if PY_VERSION_HEX >= 0x030C0000
        double value = values[i], next = sum + value;
        lost += (sum < 0 ? -sum : sum) >= (value < 0 ? -value : value) ? (sum - next) + value : (value - next) + sum;
        sum = next;
#else
        sum += values[i];
#endif
    }
    return lost != 0 && lost - lost == 0 ? sum + lost : sum;
}

/* Computes the increases of all numbers. Returns 0 if the entry is not regular, -1 for an error. */
static int
compare(Reader *to, PyObject *before, PyObject *after)
{
    PyObject *old = PyObject_GetAttr(before, to->numbers), *new = old == NULL ? NULL : PyObject_GetAttr(after, to->numbers);
    Py_ssize_t size = to->width * (Py_ssize_t)sizeof(double);
    int regular = new == NULL ? -1 : PyBytes_Check(old) && PyBytes_Check(new) && PyBytes_GET_SIZE(old) == size
        && PyBytes_GET_SIZE(new) == size;
    if (regular > 0) {
        const char *from = PyBytes_AS_STRING(old), *upto = PyBytes_AS_STRING(new);
        for (Py_ssize_t i = 0; i < to->width; i++) {
            double earlier, later;
            memcpy(&earlier, from + i * (Py_ssize_t)sizeof earlier, sizeof earlier);
            memcpy(&later, upto + i * (Py_ssize_t)sizeof later, sizeof later);
            to->more[i] = later - earlier;
            regular = regular && to->more[i] >= 0;
        }
        double operations = total(to->more, to->sums_at);
        regular = regular && total(to->more, to->width) < Py_HUGE_VAL && operations > 0 && operations <= to->max_operations
            && total(to->more + to->sums_at, to->sizes_at - to->sums_at) <= to->max_bytes
            && total(to->more + to->sizes_at, to->width - to->sizes_at) <= to->max_operations;
    }
    Py_XDECREF(old);
    Py_XDECREF(new);
    return regular;
}

static double
increase(const Reader *to, int which)
{
    return to->at[which] < 0 ? 0 : to->more[to->at[which]];
}

static PyObject *
shared(const Reader *to, double value)
{
    return value == 0 ? Py_NewRef(to->zero) : PyFloat_FromDouble(value);
}

/* Returns the RPCs by size, as one object for equal ones. */
static PyObject *
sizes(Reader *to)
{
    Py_ssize_t count = to->width - to->sizes_at;
    if (count == 0)
        return Py_NewRef(to->no_sizes);
    PyObject *key = PyTuple_New(count);
    for (Py_ssize_t i = 0; key != NULL && i < count; i++) {
        PyObject *each = shared(to, to->more[to->sizes_at + i]);
        if (each == NULL)
            Py_CLEAR(key);
        else
            PyTuple_SET_ITEM(key, i, each);
    }
    if (key == NULL)
        return NULL;
    PyObject *made = Py_XNewRef(PyDict_GetItemWithError(to->known, key));
    if (made == NULL && !PyErr_Occurred()) {
        made = PyDict_New();
        for (Py_ssize_t i = 0; made != NULL && i < count; i++)
            if (to->more[to->sizes_at + i] != 0
                && PyDict_SetItem(made, PyTuple_GET_ITEM(to->uppers, i), PyTuple_GET_ITEM(key, i)) < 0)
                Py_CLEAR(made);
        if (made != NULL && PyDict_SetItem(to->known, key, made) < 0)
            Py_CLEAR(made);
    }
    Py_DECREF(key);
    return made;
}

static PyObject *
load(Reader *to, PyObject *key)
{
    double others[MOST], reads = increase(to, READS), writes = increase(to, WRITES);
    for (Py_ssize_t i = 0; i < to->other_count; i++)
        others[i] = to->more[to->others[i]];
    PyObject *made = to->load->tp_alloc(to->load, FIELDS);
    if (made == NULL)
        return NULL;
    PyTuple_SET_ITEM(made, TARGET, Py_NewRef(PyTuple_GET_ITEM(key, 0)));
    PyTuple_SET_ITEM(made, JOB, Py_NewRef(PyTuple_GET_ITEM(key, 1)));
    PyTuple_SET_ITEM(made, LOAD_READ_BYTES, shared(to, increase(to, READ_BYTES)));
    PyTuple_SET_ITEM(made, LOAD_WRITE_BYTES, shared(to, increase(to, WRITE_BYTES)));
    PyTuple_SET_ITEM(made, LOAD_READS, shared(to, reads != 0 ? reads : increase(to, READ_CALLS)));
    PyTuple_SET_ITEM(made, LOAD_WRITES, shared(to, writes != 0 ? writes : increase(to, WRITE_CALLS)));
    PyTuple_SET_ITEM(made, LOAD_OTHERS, shared(to, total(others, to->other_count)));
    PyTuple_SET_ITEM(made, LOAD_USEC, shared(to, increase(to, READ_USEC) + increase(to, WRITE_USEC)));
    PyTuple_SET_ITEM(made, SIZES, sizes(to));
    for (int i = 0; i < FIELDS; i++)
        if (PyTuple_GET_ITEM(made, i) == NULL) {
            Py_DECREF(made);
            return NULL;
        }
    PyObject_GC_UnTrack(made); /* texts and numbers belong to no cycle: the collector skips them */
    return made;
}

static PyObject *
one(Reader *to, PyObject *changed)
{
    if (!PyTuple_Check(changed) || PyTuple_GET_SIZE(changed) != 3 || !PyTuple_Check(PyTuple_GET_ITEM(changed, 0))
        || PyTuple_GET_SIZE(PyTuple_GET_ITEM(changed, 0)) != 2) {
        PyErr_SetString(PyExc_TypeError, "loads: an entry is (target and job, earlier, later)");
        return NULL;
    }
    int regular = compare(to, PyTuple_GET_ITEM(changed, 1), PyTuple_GET_ITEM(changed, 2));
    if (regular < 0)
        return NULL;
    return regular ? load(to, PyTuple_GET_ITEM(changed, 0)) : Py_NewRef(Py_None);
}

/* Reads indexes below `limit`, or -1 where a number may be absent. Returns 0 with an error. */
static int
indexes(PyObject *from, Py_ssize_t least, Py_ssize_t limit, Py_ssize_t *to)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); i++) {
        to[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(from, i));
        if (PyErr_Occurred())
            return 0;
        if (to[i] < least || to[i] >= limit) {
            PyErr_SetString(PyExc_ValueError, "loads: no number has this index");
            return 0;
        }
    }
    return 1;
}

static PyObject *
loads(PyObject *Py_UNUSED(module), PyObject *args)
{
    Reader to;
    PyObject *changed, *positions, *others;
    if (!PyArg_ParseTuple(args, "O!(nnn)O!O!O!ddO!(O!O)", &PyList_Type, &changed, &to.width, &to.sums_at, &to.sizes_at,
                          &PyTuple_Type, &positions, &PyTuple_Type, &others, &PyTuple_Type, &to.uppers, &to.max_operations,
                          &to.max_bytes, &PyDict_Type, &to.known, &PyType_Type, &to.load, &to.no_sizes))
        return NULL;
    to.other_count = PyTuple_GET_SIZE(others);
    if (to.width < 0 || to.width > MOST || to.sums_at < 0 || to.sizes_at < to.sums_at || to.width < to.sizes_at
        || PyTuple_GET_SIZE(to.uppers) != to.width - to.sizes_at || PyTuple_GET_SIZE(positions) != POSITIONS
        || to.other_count > MOST || !PyType_IsSubtype(to.load, &PyTuple_Type)) {
        PyErr_SetString(PyExc_ValueError, "loads: not a form of at most 1024 numbers");
        return NULL;
    }
    if (!indexes(positions, -1, to.width, to.at) || !indexes(others, 0, to.width, to.others))
        return NULL;
    to.zero = PyFloat_FromDouble(0);
    to.numbers = PyUnicode_InternFromString("numbers");
    Py_ssize_t count = PyList_GET_SIZE(changed);
    PyObject *found = to.zero == NULL || to.numbers == NULL ? NULL : PyList_New(count);
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *made = i < PyList_GET_SIZE(changed) ? one(&to, PyList_GET_ITEM(changed, i)) : Py_NewRef(Py_None);
        if (made == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, made);
    }
    Py_XDECREF(to.zero);
    Py_XDECREF(to.numbers);
    return found;
}

static PyMethodDef methods[] = {
    {"loads", loads, METH_VARARGS, "Make the loads of many entries of one form."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "tierd.sense._readings", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__readings(void)
{
    return PyModule_Create(&module);
}
