/* Detects changed texts, extracts their numbers, and prints numbers into lines. The exporter reads these texts repeatedly.
 * The Python modules of lustre.formats parse any text word by word. This module reads a text of a known form in one pass.
 *
 *     mark(text, begin, end) -> int                     hash of a part of a text
 *     mark_below_times(text) -> int                     hash without the header's lines, which change at every reading
 *     following(text, keys) -> tuple                    the rest of the line after each key; keys are in text order
 *     numbers(outline, order, text) -> tuple | None     the numbers of a text; None if it does not match the outline
 *     fill(template, values) -> bytes                   prints values into a template
 *     fill_each(templates, values) -> list[bytes]       the same for several templates, each with the next values
 *     pack_each(templates, labels) -> tuple[bytes]      makes templates for fill, with this text at each place for labels
 *     grow(sums, before, now, most) -> bool             adds each increase in place; False, without change, if any number
 *                                                       fell or grew by more than most
 *
 * Outlines and templates are texts in which one control character stands for each number. lustre.formats.outline makes
 * outlines and defines the characters. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MOST_NUMBERS 2048
#define MOST_DIGITS 20 /* of 64 bits */
#define CLIPPED (uint64_t)INT64_MAX /* a kernel's sum that reached its limit; Python handles it and larger numbers */

/* -- Marks: hashes of texts (marks.c). */

uint64_t mark_of(const char *at, size_t size);
uint64_t mark_after_header(const char *at, size_t size);
ptrdiff_t rest_of_line(const char **text, const char *end, const char *key, size_t key_size, const char **rest);

static PyObject *
mark(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "mark(text: bytes, begin: int, end: int)");
        return NULL;
    }
    Py_ssize_t begin = PyLong_AsSsize_t(args[1]), end = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (begin < 0 || end < begin || end > PyBytes_GET_SIZE(args[0])) {
        PyErr_SetString(PyExc_ValueError, "mark: begin and end must lie in the text");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(mark_of(PyBytes_AS_STRING(args[0]) + begin, end - begin));
}

static PyObject *
mark_below_times(PyObject *Py_UNUSED(module), PyObject *text)
{
    if (!PyBytes_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "mark_below_times(text: bytes)");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(mark_after_header(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)));
}

/* -- The rest of the line after each key, with keys in text order; empty for a missing key. */

static PyObject *
following(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "following(text: bytes, keys: tuple[bytes, ...])");
        return NULL;
    }
    const char *at = PyBytes_AS_STRING(args[0]), *end = at + PyBytes_GET_SIZE(args[0]);
    PyObject *parts = PyTuple_New(PyTuple_GET_SIZE(args[1]));
    for (Py_ssize_t i = 0; parts != NULL && i < PyTuple_GET_SIZE(args[1]); i++) {
        PyObject *key = PyTuple_GET_ITEM(args[1], i);
        const char *rest = "";
        if (!PyBytes_Check(key)) {
            PyErr_SetString(PyExc_TypeError, "following: keys must be bytes");
            Py_CLEAR(parts);
            break;
        }
        ptrdiff_t size = rest_of_line(&at, end, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), &rest);
        PyObject *part = PyBytes_FromStringAndSize(rest, size < 0 ? 0 : size);
        if (part == NULL)
            Py_CLEAR(parts);
        else
            PyTuple_SET_ITEM(parts, i, part);
    }
    return parts;
}

/* -- Extracting numbers. */

enum { NUMBER = 1, WANTED, WANTED_TIME, TIME, FORGET, SEEN, COUNTED, SIGNED, ZERO = 11, REST_OF_LINE, BLANKS = 14 };

typedef struct {
    uint64_t value;
    const char *at; /* start of a time, which is returned as printed */
    size_t size;
} Found;

static const char *
digits(const char *at, const char *end, uint64_t *value)
{
    const char *begin = at;
    *value = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        unsigned digit = *at - '0';
        if (*value > (UINT64_MAX - digit) / 10)
            return NULL;
        *value = 10 * *value + digit;
    }
    return at == begin || (*begin == '0' && at - begin > 1) ? NULL : at;
}

/* Returns the number of values found, or -1 if the text does not match the outline. */
static int
match(const char *outline, const char *outline_end, const char *at, const char *end, Found *found)
{
    int count = 0;
    uint64_t value, seen = 0;
    for (; outline < outline_end; outline++) {
        int kind = (unsigned char)*outline;
        if (kind > BLANKS || kind == 0 || kind == '\n' || kind == '\t' || (kind > REST_OF_LINE && kind < BLANKS)) {
            if (at == end || *at++ != *outline)
                return -1;
            continue;
        }
        if (kind == FORGET) {
            seen = 0;
            continue;
        }
        if (kind == SEEN) {
            if (seen == 0)
                return -1;
            continue;
        }
        if (kind == BLANKS) {
            while (at < end && (*at == ' ' || *at == '\t'))
                at++;
            continue;
        }
        if (kind == REST_OF_LINE) {
            if ((at = memchr(at, '\n', end - at)) == NULL)
                return -1;
            continue;
        }
        if (kind == TIME || kind == WANTED_TIME) {
            const char *begin = at;
            while (at < end && ((*at >= '0' && *at <= '9') || *at == '.'))
                at++;
            if (at == begin || at - begin > 2 * MOST_DIGITS)
                return -1;
            if (kind == WANTED_TIME) {
                if (count == MOST_NUMBERS)
                    return -1;
                found[count++] = (Found){0, begin, at - begin};
            }
            continue;
        }
        if (kind == SIGNED && at < end && *at == '-')
            at++;
        if (kind == SIGNED || kind == NUMBER) { /* any length: sums of squares wrap early */
            const char *begin = at;
            while (at < end && *at >= '0' && *at <= '9')
                at++;
            if (at == begin || at - begin > MOST_DIGITS)
                return -1;
            continue;
        }
        if ((at = digits(at, end, &value)) == NULL || value >= CLIPPED || (kind == ZERO && value != 0))
            return -1;
        seen |= value;
        if (kind == WANTED || kind == ZERO) {
            if (count == MOST_NUMBERS)
                return -1;
            found[count++] = (Found){value, NULL, 0};
        }
    }
    return at == end ? count : -1;
}

static PyObject *
numbers(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t size)
{
    Found found[MOST_NUMBERS];
    if (size != 3 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[1]) || !PyBytes_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "numbers(outline: bytes, order: bytes, text: bytes)");
        return NULL;
    }
    const char *outline = PyBytes_AS_STRING(args[0]), *text = PyBytes_AS_STRING(args[2]);
    int count = match(outline, outline + PyBytes_GET_SIZE(args[0]), text, text + PyBytes_GET_SIZE(args[2]), found);
    if (count < 0)
        Py_RETURN_NONE;
    if (PyBytes_GET_SIZE(args[1]) != (Py_ssize_t)(count * sizeof(uint16_t))) {
        PyErr_SetString(PyExc_ValueError, "numbers: order must say where each wanted number goes, 16 bits each");
        return NULL;
    }
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        uint16_t place;
        memcpy(&place, PyBytes_AS_STRING(args[1]) + i * sizeof place, sizeof place);
        if (place >= count || PyTuple_GET_ITEM(tuple, place) != NULL) {
            PyErr_SetString(PyExc_ValueError, "numbers: order must be a permutation");
            Py_CLEAR(tuple);
            break;
        }
        PyObject *value = found[i].at != NULL ? PyBytes_FromStringAndSize(found[i].at, found[i].size)
                                              : PyLong_FromUnsignedLongLong(found[i].value);
        if (value == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, place, value);
    }
    return tuple;
}

/* -- Printing numbers. */

/* A packed template is a sequence of pieces. A piece has the length of its text in 16 bits, a character for the kind of
 * value that follows the text, and the text. The texts are copied whole, without a search for places. */
enum { NOTHING, INTEGER, SECONDS, ADDED, TOTAL, ANEW };
#define MOST_PRINTED 24 /* length of one number: twenty digits, a point, leading zeros */
#define MOST_FILLED (1 << 16) /* length of one filled template on the stack; longer ones use allocated memory */

static char *
printed(char *out, uint64_t value)
{
    char text[MOST_DIGITS];
    size_t at = sizeof text;
    do
        text[--at] = '0' + value % 10;
    while (value /= 10);
    memcpy(out, text + at, sizeof text - at);
    return out + sizeof text - at;
}

/* Microseconds as seconds with six places. */
static char *
printed_seconds(char *out, uint64_t usec)
{
    unsigned rest = usec % 1000000;
    out = printed(out, usec / 1000000);
    *out = '.';
    for (int place = 6; place > 0; place--, rest /= 10)
        out[place] = '0' + rest % 10;
    return out + 7;
}

/* Prints the values from a position on, and moves the position. Returns the end of the printed text, or NULL with an exception
 * set. */
static char *
print(const char *template, const char *end, PyObject *values, Py_ssize_t *position, char *out)
{
    Py_ssize_t used = *position, size = PyTuple_GET_SIZE(values);
    uint64_t value = 0, total = 0;
    while (end - template > 2) {
        uint16_t length;
        memcpy(&length, template, sizeof length);
        int kind = template[2];
        template += 3;
        if (length > end - template || kind > ANEW || kind < NOTHING) {
            PyErr_SetString(PyExc_ValueError, "fill: not a packed template");
            return NULL;
        }
        memcpy(out, template, length);
        out += length;
        template += length;
        if (kind == INTEGER || kind == SECONDS || kind == ADDED) {
            if (used == size) {
                PyErr_SetString(PyExc_ValueError, "fill: fewer values than places");
                return NULL;
            }
            value = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(values, used++));
            if (value == (uint64_t)-1 && PyErr_Occurred())
                return NULL;
        }
        if (kind == INTEGER)
            out = printed(out, value);
        else if (kind == SECONDS)
            out = printed_seconds(out, value);
        else if (kind == ADDED || kind == TOTAL)
            out = printed(out, total += kind == ADDED ? value : 0);
        else if (kind == ANEW)
            total = 0;
    }
    if (template != end) {
        PyErr_SetString(PyExc_ValueError, "fill: not a packed template");
        return NULL;
    }
    *position = used;
    return out;
}

/* -- Making templates (exporter.templates). */

#define LABELS 6

/* Ends a piece: enters its length and the kind of the value that follows it. Returns the place for the next piece's text, or
 * NULL if the piece is too long. */
static char *
end_piece(char *piece, char *out, int kind)
{
    size_t length = out - piece - 3;
    uint16_t stored = (uint16_t)length;
    if (length > UINT16_MAX)
        return NULL;
    memcpy(piece, &stored, sizeof stored);
    piece[2] = (char)kind;
    return out;
}

static PyObject *
packed(PyObject *template, PyObject *labels)
{
    const char *at = PyBytes_AS_STRING(template), *end = at + PyBytes_GET_SIZE(template);
    Py_ssize_t size = 3;
    for (const char *one = at; one < end; one++)
        size += *one == LABELS ? PyBytes_GET_SIZE(labels) : *one >= INTEGER && *one <= ANEW ? 3 : 1;
    PyObject *result = PyBytes_FromStringAndSize(NULL, size);
    if (result == NULL)
        return NULL;
    char *piece = PyBytes_AS_STRING(result), *out = piece + 3;
    for (; at < end && piece != NULL; at++) {
        if (*at == LABELS) {
            memcpy(out, PyBytes_AS_STRING(labels), PyBytes_GET_SIZE(labels));
            out += PyBytes_GET_SIZE(labels);
        } else if (*at >= INTEGER && *at <= ANEW) {
            piece = end_piece(piece, out, *at);
            out += 3;
        } else
            *out++ = *at;
    }
    if (piece == NULL || end_piece(piece, out, NOTHING) == NULL) {
        PyErr_SetString(PyExc_ValueError, "pack_each: too long a piece");
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *
pack_each(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyTuple_Check(args[0]) || !PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "pack_each(templates: tuple, labels: bytes)");
        return NULL;
    }
    PyObject *results = PyTuple_New(PyTuple_GET_SIZE(args[0]));
    for (Py_ssize_t i = 0; results != NULL && i < PyTuple_GET_SIZE(args[0]); i++) {
        PyObject *template = PyTuple_GET_ITEM(args[0], i), *result = NULL;
        if (PyBytes_Check(template))
            result = packed(template, args[1]);
        else
            PyErr_SetString(PyExc_TypeError, "pack_each: templates must be bytes");
        if (result == NULL)
            Py_CLEAR(results);
        else
            PyTuple_SET_ITEM(results, i, result);
    }
    return results;
}

static PyObject *
filled(PyObject *template, PyObject *values, Py_ssize_t *position)
{
    char here[MOST_FILLED], *room = here;
    /* every place takes at least three bytes of the template, so this is enough */
    size_t most = PyBytes_GET_SIZE(template) * (MOST_PRINTED / 3);
    if (most > sizeof here && (room = PyMem_Malloc(most)) == NULL)
        return PyErr_NoMemory();
    const char *begin = PyBytes_AS_STRING(template);
    const char *end = print(begin, begin + PyBytes_GET_SIZE(template), values, position, room);
    PyObject *text = end == NULL ? NULL : PyBytes_FromStringAndSize(room, end - room);
    if (room != here)
        PyMem_Free(room);
    return text;
}

/* Returns the result if all values were used. */
static PyObject *
if_all_used(PyObject *result, Py_ssize_t used, PyObject *values)
{
    if (result != NULL && used != PyTuple_GET_SIZE(values)) {
        PyErr_SetString(PyExc_ValueError, "fill: more values than places");
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *
fill(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t used = 0;
    if (count != 2 || !PyBytes_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "fill(template: bytes, values: tuple)");
        return NULL;
    }
    PyObject *text = filled(args[0], args[1], &used);
    return if_all_used(text, used, args[1]);
}

static PyObject *
fill_each(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t used = 0;
    if (count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "fill_each(templates: tuple, values: tuple)");
        return NULL;
    }
    PyObject *texts = PyList_New(PyTuple_GET_SIZE(args[0]));
    for (Py_ssize_t i = 0; texts != NULL && i < PyTuple_GET_SIZE(args[0]); i++) {
        PyObject *template = PyTuple_GET_ITEM(args[0], i), *text = NULL;
        if (PyBytes_Check(template))
            text = filled(template, args[1], &used);
        else
            PyErr_SetString(PyExc_TypeError, "fill_each: templates must be bytes");
        if (text == NULL)
            Py_CLEAR(texts);
        else
            PyList_SET_ITEM(texts, i, text);
    }
    return if_all_used(texts, used, args[1]);
}

/* -- Adding up. */

/* Whether a number fell or grew by more than most. Numbers that do not fit 63 bits count as that, which is what the
 * caller wants: no counter reaches them. Returns -1 with an exception set. */
static int
jumped(PyObject *before, PyObject *now, long long most)
{
    int wide_before, wide_now;
    long long old = PyLong_AsLongLongAndOverflow(before, &wide_before);
    long long new = PyLong_AsLongLongAndOverflow(now, &wide_now);
    if ((old == -1 || new == -1) && PyErr_Occurred())
        return -1;
    return wide_before || wide_now || new < old || (unsigned long long)new - (unsigned long long)old > (unsigned long long)most;
}

static PyObject *
grown(PyObject *sum, PyObject *before, PyObject *now)
{
    int wide_before, wide_now, wide_sum;
    long long old = PyLong_AsLongLongAndOverflow(before, &wide_before);
    long long new = PyLong_AsLongLongAndOverflow(now, &wide_now);
    long long all = PyLong_AsLongLongAndOverflow(sum, &wide_sum);
    if (all == -1 && PyErr_Occurred())
        return NULL;
    if (!wide_before && !wide_now && !wide_sum && old >= 0 && all >= 0 && new - old <= LLONG_MAX - all)
        return new == old ? Py_NewRef(sum) : PyLong_FromLongLong(all + (new - old));
    PyObject *growth = PyNumber_Subtract(now, before), *both = growth == NULL ? NULL : PyNumber_Add(sum, growth);
    Py_XDECREF(growth);
    return both;
}

static int
is_sequence(PyObject *numbers, Py_ssize_t size)
{
    return (PyTuple_Check(numbers) || PyList_Check(numbers)) && PySequence_Fast_GET_SIZE(numbers) == size;
}

static PyObject *
grow(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t size = count == 4 && PyList_Check(args[0]) ? PyList_GET_SIZE(args[0]) : -1;
    if (size < 0 || !is_sequence(args[1], size) || !is_sequence(args[2], size)) {
        PyErr_SetString(PyExc_TypeError, "grow(sums: list, before: list or tuple, now: the same, most: int), all of one length");
        return NULL;
    }
    long long most = PyLong_AsLongLong(args[3]);
    if (most < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "grow: most must not be negative");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        int back = jumped(PySequence_Fast_GET_ITEM(args[1], i), PySequence_Fast_GET_ITEM(args[2], i), most);
        if (back < 0)
            return NULL;
        if (back)
            Py_RETURN_FALSE;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *sum = grown(
            PyList_GET_ITEM(args[0], i), PySequence_Fast_GET_ITEM(args[1], i), PySequence_Fast_GET_ITEM(args[2], i));
        if (sum == NULL || PyList_SetItem(args[0], i, sum) < 0)
            return NULL;
    }
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"mark", (PyCFunction)(void (*)(void))mark, METH_FASTCALL, "Hash of a part of a text."},
    {"mark_below_times", mark_below_times, METH_O, "Hash of the text after the times of a header."},
    {"following", (PyCFunction)(void (*)(void))following, METH_FASTCALL, "The rest of the line after each key."},
    {"numbers", (PyCFunction)(void (*)(void))numbers, METH_FASTCALL, "The numbers of a text that matches an outline, or None."},
    {"pack_each", (PyCFunction)(void (*)(void))pack_each, METH_FASTCALL, "Templates with labels."},
    {"fill_each", (PyCFunction)(void (*)(void))fill_each, METH_FASTCALL, "Texts of templates, each with the next values."},
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, "Prints values into a template."},
    {"grow", (PyCFunction)(void (*)(void))grow, METH_FASTCALL, "Adds each increase in place; False if any number fell or jumped."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "lustre.formats._texts", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__texts(void)
{
    return PyModule_Create(&module);
}
