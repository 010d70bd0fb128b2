/* Reads parameters of many devices. Each file is opened relative to the directory of its kind, so that the kernel looks up
 * two names instead of eight, and the interpreter's lock is released once for all of them. Texts that have not changed and
 * numbers do not become Python objects of their own.
 *
 *     read_many(parent, devices, name, keys, marks, skip, progress) -> tuple[int, list[tuple[int, bytes | None, int]]]
 *     read_numbers(parent, devices, names, skip, progress) -> tuple[int, list[list[int | None]], list[tuple[int, int]]]
 *
 * The files are PARENT/DEVICE/NAME. Devices whose byte in skip is not 0 are not read. Both results begin with the number of
 * bytes of the texts that were read and understood. progress is a writable buffer of eight bytes, in which the position of
 * the file that is being read stands (device x number of names + name), so that another thread sees where a read hangs.
 *
 * read_many compares the mark of a text (formats/marks.c) with that in marks, eight bytes for each device. It returns
 * position, text and mark of each device whose text has another mark. keys are the lines that count: without keys all but
 * the header; if a key is missing, the whole text. If keys is None, every text is returned, with the mark 0. A text of None
 * means that the caller must read the file by itself: it is absent, empty, unreadable or too long.
 *
 * read_numbers returns a list of numbers for each name, in the order of the devices, and the positions (device, name) of the
 * files without a number: the caller must read them by itself. Only "digits, newline" below 2^63 is a number here. */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_TEXT (1 << 16) /* bytes of one text */
#define LINE (1 << 8)
#define MOST_PATH 512
#define MOST_KEYS 16
#define MOST_NAMES 16
#define MOST_NUMBER_DIGITS 19 /* so that the value fits 64 bits */

uint64_t mark_of(const char *at, size_t size);
uint64_t mark_after_header(const char *at, size_t size);
ptrdiff_t rest_of_line(const char **text, const char *end, const char *key, size_t key_size, const char **rest);

typedef struct {
    const char *at;
    Py_ssize_t size;
} Text;

typedef struct {
    int directory;
    Py_ssize_t count; /* of devices */
    Text *devices;
    const char *skip;
    volatile int64_t *progress;
} Batch;

typedef struct {
    Py_ssize_t device;
    char *data; /* NULL if the caller must read the file */
    ssize_t size;
    uint64_t mark;
} Changed;

typedef struct {
    int all; /* every text counts as changed */
    Py_ssize_t count;
    Text keys[MOST_KEYS];
} Part;

/* Reads a file to its end, or one line with one read. Returns the size, a negative error number, or MOST_TEXT if it does not
 * fit. It makes the system calls directly, because libc's functions check for the cancellation of threads, which costs 3% of
 * a scrape of 30,000 files. */
static ssize_t
read_file(int directory, const char *path, char *buffer, int one_line)
{
    ssize_t size = 0, got;
    int file;
    do
        file = (int)syscall(SYS_openat, directory, path, O_RDONLY | O_CLOEXEC);
    while (file < 0 && errno == EINTR);
    if (file < 0)
        return -errno;
    for (;;) {
        got = syscall(SYS_read, file, buffer + size, (size_t)((one_line ? LINE : MOST_TEXT) - size));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += got;
        if (size >= MOST_TEXT || one_line)
            break;
    }
    if (got < 0)
        size = -errno;
    syscall(SYS_close, file);
    return size;
}

static const char *
path_of(char *path, const Text *device, const Text *name)
{
    memcpy(path, device->at, device->size);
    path[device->size] = '/';
    memcpy(path + device->size + 1, name->at, name->size + 1);
    return path;
}

static uint64_t
mark_of_part(const Part *part, const char *text, size_t size)
{
    const char *at = text, *end = text + size, *rest;
    uint64_t marks[MOST_KEYS];
    if (part->count == 0)
        return mark_after_header(text, size);
    for (Py_ssize_t i = 0; i < part->count; i++) {
        ptrdiff_t rest_size = rest_of_line(&at, end, part->keys[i].at, part->keys[i].size, &rest);
        if (rest_size <= 0)
            return mark_of(text, size);
        marks[i] = mark_of(rest, rest_size);
    }
    return mark_of((const char *)marks, part->count * sizeof *marks);
}

/* Reads all files without the interpreter's lock. Returns the number of changed texts; bytes is the sum of all sizes. */
static Py_ssize_t
read_texts(const Batch *batch, const Text *name, const Part *part, const char *marks, Changed *changed, uint64_t *bytes)
{
    static _Thread_local char buffer[MOST_TEXT];
    char path[2 * MOST_PATH];
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        if (batch->skip[i])
            continue;
        *batch->progress = i;
        ssize_t size = read_file(batch->directory, path_of(path, &batch->devices[i], name), buffer, 0);
        Changed *this = &changed[found];
        *this = (Changed){.device = i};
        if (size > 0 && size < MOST_TEXT) {
            uint64_t before = 0;
            if (!part->all) {
                memcpy(&before, marks + i * sizeof before, sizeof before);
                this->mark = mark_of_part(part, buffer, size);
            }
            if (before != 0 && before == this->mark) {
                *bytes += size;
                continue;
            }
            this->data = PyMem_RawMalloc(size);
            if (this->data != NULL) {
                memcpy(this->data, buffer, size);
                this->size = size;
                *bytes += size;
            }
        }
        found++;
    }
    *batch->progress = -1;
    return found;
}

/* Returns the number of a text, or -1 if it is no number. */
static int64_t
number_of(const char *text, ssize_t size)
{
    uint64_t value = 0;
    if (size < 2 || size > MOST_NUMBER_DIGITS + 1 || text[size - 1] != '\n')
        return -1;
    for (ssize_t i = 0; i < size - 1; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value > INT64_MAX ? -1 : (int64_t)value;
}

/* Reads all numbers without the interpreter's lock: all files of one device, then those of the next, because the kernel finds
 * the files of a directory that it has just used in a third less time. */
static void
read_values(const Batch *batch, const Text *names, Py_ssize_t name_count, int64_t *values, uint64_t *bytes)
{
    char path[2 * MOST_PATH], buffer[LINE];
    for (Py_ssize_t i = 0; i < batch->count; i++)
        for (Py_ssize_t j = 0; j < name_count; j++) {
            int64_t *value = &values[i * name_count + j];
            *value = -1;
            if (batch->skip[i])
                continue;
            *batch->progress = i * name_count + j;
            ssize_t size = read_file(batch->directory, path_of(path, &batch->devices[i], &names[j]), buffer, 1);
            *value = number_of(buffer, size);
            if (*value >= 0)
                *bytes += size;
        }
    *batch->progress = -1;
}

/* Raises the audit event of a file, as Python's open does. It costs next to nothing without a hook. */
static int
audit(const char *parent, const Batch *batch, const Text *name)
{
    char whole[4 * MOST_PATH], path[2 * MOST_PATH];
    size_t size = strlen(parent);
    if (size + 1 + 2 * MOST_PATH > sizeof whole) {
        PyErr_SetString(PyExc_ValueError, "the directory has too long a name");
        return 0;
    }
    memcpy(whole, parent, size);
    if (size && whole[size - 1] != '/')
        whole[size++] = '/';
    for (Py_ssize_t i = 0; i < batch->count; i++) {
        if (batch->skip[i])
            continue;
        strcpy(whole + size, path_of(path, &batch->devices[i], name));
        if (PySys_Audit("open", "ssi", whole, NULL, O_RDONLY | O_CLOEXEC) < 0)
            return 0;
    }
    return 1;
}

static int
text_of(PyObject *object, Text *text)
{
    text->at = PyUnicode_AsUTF8AndSize(object, &text->size);
    if (text->at == NULL)
        return 0;
    if (text->size >= MOST_PATH || memchr(text->at, 0, text->size) != NULL) {
        PyErr_SetString(PyExc_ValueError, "too long a name, or one with a zero byte");
        return 0;
    }
    return 1;
}

/* Fills in a batch. Returns 0 with an exception set. */
static int
make_batch(Batch *batch, PyObject *devices, const Py_buffer *skip, const Py_buffer *progress)
{
    batch->count = PyList_GET_SIZE(devices);
    if (skip->len != batch->count || progress->len != sizeof(int64_t)) {
        PyErr_SetString(PyExc_ValueError, "skip must have a byte for each device, progress eight bytes");
        return 0;
    }
    batch->skip = skip->buf;
    batch->progress = progress->buf;
    batch->devices = PyMem_Calloc(batch->count + 1, sizeof *batch->devices);
    if (batch->devices == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < batch->count; i++)
        if (!text_of(PyList_GET_ITEM(devices, i), &batch->devices[i]))
            return 0;
    return 1;
}

static int
make_part(Part *part, PyObject *keys)
{
    part->all = keys == Py_None;
    part->count = 0;
    if (part->all)
        return 1;
    if (!PyTuple_Check(keys) || PyTuple_GET_SIZE(keys) > MOST_KEYS) {
        PyErr_SetString(PyExc_TypeError, "read_many: keys must be None or a short tuple of bytes");
        return 0;
    }
    for (; part->count < PyTuple_GET_SIZE(keys); part->count++) {
        PyObject *key = PyTuple_GET_ITEM(keys, part->count);
        if (!PyBytes_Check(key)) {
            PyErr_SetString(PyExc_TypeError, "read_many: keys must be bytes");
            return 0;
        }
        part->keys[part->count] = (Text){PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)};
    }
    return 1;
}

static PyObject *
changed_list(const Changed *changed, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        const Changed *this = &changed[i];
        PyObject *one = this->data == NULL
                            ? Py_BuildValue("nOi", this->device, Py_None, 0)
                            : Py_BuildValue("ny#K", this->device, this->data, this->size, (unsigned long long)this->mark);
        if (one == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, one);
    }
    return list;
}

static PyObject *
read_many(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *parent;
    PyObject *devices, *name_object, *keys, *list, *results = NULL;
    Py_buffer marks, skip, progress;
    Batch batch = {0};
    Changed *changed = NULL;
    Text name;
    Part part;
    if (!PyArg_ParseTuple(args, "sO!UOy*y*w*", &parent, &PyList_Type, &devices, &name_object, &keys, &marks, &skip, &progress))
        return NULL;
    if (!make_batch(&batch, devices, &skip, &progress) || !text_of(name_object, &name) || !make_part(&part, keys))
        goto end;
    if (!part.all && marks.len != batch.count * (Py_ssize_t)sizeof(uint64_t)) {
        PyErr_SetString(PyExc_ValueError, "read_many: marks must have eight bytes for each device");
        goto end;
    }
    if (!audit(parent, &batch, &name))
        goto end;
    changed = PyMem_Calloc(batch.count + 1, sizeof *changed);
    if (changed == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    Py_ssize_t count = 0;
    uint64_t bytes = 0;
    Py_BEGIN_ALLOW_THREADS
    batch.directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (batch.directory >= 0) {
        count = read_texts(&batch, &name, &part, marks.buf, changed, &bytes);
        close(batch.directory);
    } else
        for (Py_ssize_t i = 0; i < batch.count; i++)
            if (!batch.skip[i])
                changed[count++].device = i;
    Py_END_ALLOW_THREADS
    list = changed_list(changed, count);
    if (list != NULL)
        results = Py_BuildValue("KN", (unsigned long long)bytes, list);
    for (Py_ssize_t i = 0; i < count; i++)
        PyMem_RawFree(changed[i].data);
end:
    PyMem_Free(changed);
    PyMem_Free(batch.devices);
    PyBuffer_Release(&marks);
    PyBuffer_Release(&skip);
    PyBuffer_Release(&progress);
    return results;
}

/* Makes the lists of read_numbers. */
static PyObject *
numbers_of(const Batch *batch, Py_ssize_t name_count, const int64_t *values, uint64_t bytes)
{
    PyObject *lists = PyList_New(name_count), *others = PyList_New(0);
    for (Py_ssize_t j = 0; lists != NULL && others != NULL && j < name_count; j++) {
        PyObject *list = PyList_New(batch->count);
        if (list == NULL)
            goto failed;
        PyList_SET_ITEM(lists, j, list);
        for (Py_ssize_t i = 0; i < batch->count; i++) {
            int64_t value = values[i * name_count + j];
            PyObject *number = value < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(value);
            if (number == NULL)
                goto failed;
            PyList_SET_ITEM(list, i, number);
            if (value >= 0 || batch->skip[i])
                continue;
            PyObject *where = Py_BuildValue("nn", i, j);
            if (where == NULL || PyList_Append(others, where) < 0) {
                Py_XDECREF(where);
                goto failed;
            }
            Py_DECREF(where);
        }
    }
    if (lists != NULL && others != NULL)
        return Py_BuildValue("KNN", (unsigned long long)bytes, lists, others);
failed:
    Py_XDECREF(lists);
    Py_XDECREF(others);
    return NULL;
}

static PyObject *
read_numbers(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *parent;
    PyObject *devices, *name_objects, *results = NULL;
    Py_buffer skip, progress;
    Batch batch = {0};
    Text names[MOST_NAMES];
    int64_t *values = NULL;
    if (!PyArg_ParseTuple(args, "sO!O!y*w*", &parent, &PyList_Type, &devices, &PyTuple_Type, &name_objects, &skip, &progress))
        return NULL;
    Py_ssize_t name_count = PyTuple_GET_SIZE(name_objects);
    if (name_count > MOST_NAMES) {
        PyErr_SetString(PyExc_ValueError, "read_numbers: too many names");
        goto end;
    }
    if (!make_batch(&batch, devices, &skip, &progress))
        goto end;
    for (Py_ssize_t j = 0; j < name_count; j++)
        if (!text_of(PyTuple_GET_ITEM(name_objects, j), &names[j]) || !audit(parent, &batch, &names[j]))
            goto end;
    values = PyMem_Malloc((batch.count * name_count + 1) * sizeof *values);
    if (values == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    uint64_t bytes = 0;
    Py_BEGIN_ALLOW_THREADS
    batch.directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (batch.directory >= 0) {
        read_values(&batch, names, name_count, values, &bytes);
        close(batch.directory);
    } else
        for (Py_ssize_t i = 0; i < batch.count * name_count; i++)
            values[i] = -1;
    Py_END_ALLOW_THREADS
    results = numbers_of(&batch, name_count, values, bytes);
end:
    PyMem_Free(values);
    PyMem_Free(batch.devices);
    PyBuffer_Release(&skip);
    PyBuffer_Release(&progress);
    return results;
}

static PyMethodDef methods[] = {
    {"read_many", read_many, METH_VARARGS, "The changed texts of one parameter of many devices."},
    {"read_numbers", read_numbers, METH_VARARGS, "Several numbers of many devices."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "lustre._files", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__files(void)
{
    return PyModule_Create(&module);
}
