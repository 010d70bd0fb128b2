/* Reads one parameter of many devices. Each file is opened relative to the directory of its kind, so that the kernel looks
 * up two names instead of eight, and the interpreter's lock is released once for all of them.
 *
 *     read_many(parent, devices, name, one_line, progress) -> list[bytes | int | None]
 *
 * The files are PARENT/DEVICE/NAME. A result is the whole text, None for a file that could not be opened because it is
 * absent, another error number, or 0 for a text that does not fit the buffer: the caller reads this file by itself.
 * With one_line, one read is enough if it ends with a newline. progress is a writable buffer of eight bytes, in which
 * the position of the file that is being read stands, so that another thread sees where a read hangs. */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MOST_TEXT (1 << 16) /* bytes of one text */
#define LINE (1 << 8)
#define MOST_PATH 512

typedef struct {
    const char *path; /* below the directory */
    char *data;
    ssize_t size; /* negative: an error number */
} File;

static int
is_absent(int error)
{
    return error == ENOENT || error == ENODEV || error == ENOTDIR || error == ENXIO || error == ESTALE;
}

/* Reads a file to its end. Returns the size, a negative error number, or MOST_TEXT if it does not fit. */
static ssize_t
read_file(int directory, const char *path, char *buffer, int one_line)
{
    ssize_t size = 0, got;
    int file;
    do
        file = openat(directory, path, O_RDONLY | O_CLOEXEC);
    while (file < 0 && errno == EINTR);
    if (file < 0)
        return -errno;
    for (;;) {
        got = read(file, buffer + size, (one_line && !size ? LINE : MOST_TEXT) - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += got;
        if (size >= MOST_TEXT || (one_line && size == got && size < LINE && buffer[size - 1] == '\n'))
            break;
    }
    if (got < 0)
        size = -errno;
    close(file);
    return size;
}

/* Reads all files into memory of their own, without the interpreter's lock. */
static void
read_files(int directory, File *files, Py_ssize_t count, int one_line, volatile int64_t *progress)
{
    static _Thread_local char buffer[MOST_TEXT];
    for (Py_ssize_t i = 0; i < count; i++) {
        *progress = i;
        files[i].size = read_file(directory, files[i].path, buffer, one_line);
        if (files[i].size > 0 && files[i].size < MOST_TEXT) {
            files[i].data = PyMem_RawMalloc(files[i].size);
            if (files[i].data == NULL)
                files[i].size = -ENOMEM;
            else
                memcpy(files[i].data, buffer, files[i].size);
        }
    }
    *progress = -1;
}

static PyObject *
result_of(const File *file)
{
    if (file->size >= MOST_TEXT)
        return PyLong_FromLong(0);
    if (file->size >= 0)
        return PyBytes_FromStringAndSize(file->data, file->size);
    if (is_absent(-file->size))
        Py_RETURN_NONE;
    return PyLong_FromLong(-file->size);
}

/* Joins each device and the name to a path. Returns 0 with an exception set. */
static int
make_paths(PyObject *devices, const char *name, size_t name_size, File *files, char *paths)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(devices); i++, paths += MOST_PATH) {
        Py_ssize_t size;
        const char *device = PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(devices, i), &size);
        if (device == NULL)
            return 0;
        if (size + name_size + 2 > MOST_PATH || memchr(device, 0, size) != NULL) {
            PyErr_SetString(PyExc_ValueError, "read_many: a device has too long a name");
            return 0;
        }
        memcpy(paths, device, size);
        paths[size] = '/';
        memcpy(paths + size + 1, name, name_size + 1);
        files[i] = (File){.path = paths};
    }
    return 1;
}

/* Raises the audit event of each file, as Python's open does. It costs next to nothing without a hook. */
static int
audit(const char *parent, const File *files, Py_ssize_t count)
{
    char whole[2 * MOST_PATH];
    size_t size = strlen(parent);
    if (size + 1 + MOST_PATH > sizeof whole) {
        PyErr_SetString(PyExc_ValueError, "read_many: the directory has too long a name");
        return 0;
    }
    memcpy(whole, parent, size);
    if (size && whole[size - 1] != '/')
        whole[size++] = '/';
    for (Py_ssize_t i = 0; i < count; i++) {
        strcpy(whole + size, files[i].path);
        if (PySys_Audit("open", "ssi", whole, NULL, O_RDONLY | O_CLOEXEC) < 0)
            return 0;
    }
    return 1;
}

static PyObject *
read_many(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *parent, *name;
    Py_ssize_t name_size;
    PyObject *devices, *results = NULL;
    Py_buffer progress;
    int one_line;
    if (!PyArg_ParseTuple(args, "sO!s#pw*", &parent, &PyList_Type, &devices, &name, &name_size, &one_line, &progress))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(devices);
    File *files = PyMem_Calloc(count ? count : 1, sizeof *files);
    char *paths = PyMem_Malloc((count ? count : 1) * MOST_PATH);
    if (files == NULL || paths == NULL || progress.len != sizeof(int64_t)) {
        if (progress.len != sizeof(int64_t))
            PyErr_SetString(PyExc_ValueError, "read_many: progress must have eight bytes");
        else
            PyErr_NoMemory();
        goto end;
    }
    if (!make_paths(devices, name, name_size, files, paths) || !audit(parent, files, count))
        goto end;
    Py_BEGIN_ALLOW_THREADS
    int directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC), error = errno;
    if (directory >= 0) {
        read_files(directory, files, count, one_line, progress.buf);
        close(directory);
    } else
        for (Py_ssize_t i = 0; i < count; i++)
            files[i].size = -error;
    Py_END_ALLOW_THREADS
    results = PyList_New(count);
    for (Py_ssize_t i = 0; results != NULL && i < count; i++) {
        PyObject *result = result_of(&files[i]);
        if (result == NULL)
            Py_CLEAR(results);
        else
            PyList_SET_ITEM(results, i, result);
    }
    for (Py_ssize_t i = 0; i < count; i++)
        PyMem_RawFree(files[i].data);
end:
    PyMem_Free(files);
    PyMem_Free(paths);
    PyBuffer_Release(&progress);
    return results;
}

static PyMethodDef methods[] = {
    {"read_many", read_many, METH_VARARGS, "The texts of one parameter of many devices."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "lustre._files", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__files(void)
{
    return PyModule_Create(&module);
}
