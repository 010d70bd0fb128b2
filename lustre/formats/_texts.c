/* Detects changed texts, extracts their numbers, and prints numbers into lines. The exporter reads these texts repeatedly.
 * The Python modules of lustre.formats parse any text word by word. This module reads a text of a known form in one pass.
 *
 *     mark(text, begin, end) -> int                     hash of a part of a text
 *     mark_below_times(text) -> int                     hash without the header's lines, which change at every reading
 *     following(text, keys) -> tuple                    the rest of the line after each key; keys are in text order
 *     numbers(outline, order, text) -> tuple | None     the numbers of a text; None if it does not match the outline
 *     pack_each(templates) -> tuple[bytes] | None       makes templates for the next two; None if one has too long a text
 *     fill_columns(rows) -> list[bytes]                 prints rows (templates, labels, values, ...): for each template in turn
 *                                                       the texts of all rows. Each takes the values after the previous one
 *     fill_numbers(template, labels, values) -> bytes   prints a template for each labels with its value, unless that is None
 *     grow(sums, before, now, most) -> bool             adds each increase in place; False, without change, if any number
 *                                                       fell or grew by more than most
 *
 * Outlines and templates are texts in which one control character stands for each number. lustre.formats.outline makes
 * outlines, exporter.templates makes templates. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MOST_NUMBERS 2048
#define MOST_DIGITS 20 /* of 64 bits */
/* The control characters of outlines and templates; lustre.formats.opcodes says what they mean. */
#define OPCODES(ENTRY) \
    ENTRY(NUMBER, 0x0e) ENTRY(WANTED, 0x0f) ENTRY(WANTED_TIME, 0x10) ENTRY(TIME, 0x11) ENTRY(FORGET, 0x12) \
    ENTRY(SEEN, 0x13) ENTRY(COUNTED, 0x14) ENTRY(SIGNED, 0x15) ENTRY(ZERO, 0x16) ENTRY(BLANKS, 0x17) \
    ENTRY(INTEGER, 0x19) ENTRY(SECONDS, 0x1a) ENTRY(CUMULATIVE, 0x1b) ENTRY(TOTAL, 0x1c) \
    ENTRY(NEW_SUM, 0x1d) ENTRY(LABELS, 0x1e)
#define IN_ENUM(name, value) name = value,
enum { OPCODES(IN_ENUM) };
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
        if (kind < NUMBER || kind > BLANKS) {
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
#define NOTHING 0
#define MOST_PRINTED 32 /* length of one number: twenty digits, a point, leading zeros */
#define FIRST_ROOM (1 << 16)

typedef struct {
    char *begin, *at, *end;
} Out;

/* The labels and values of one device, and the number of its values that are printed. */
typedef struct {
    PyObject *labels, *values;
    Py_ssize_t used;
} Row;

/* Makes room for a number of bytes. Returns 0 with an exception set. */
static int
make_room(Out *out, size_t size)
{
    if ((size_t)(out->end - out->at) >= size)
        return 1;
    size_t used = out->at - out->begin, most = 2 * (out->end - out->begin);
    if (most < used + size)
        most = used + size;
    if (most < FIRST_ROOM)
        most = FIRST_ROOM;
    char *begin = PyMem_Realloc(out->begin, most);
    if (begin == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    *out = (Out){begin, begin + used, begin + most};
    return 1;
}

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

/* Takes the next value of a row. Returns 0 with an exception set. */
static int
take(Row *row, uint64_t *value)
{
    if (row->used == PyTuple_GET_SIZE(row->values)) {
        PyErr_SetString(PyExc_ValueError, "fill: fewer values than places");
        return 0;
    }
    *value = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(row->values, row->used++));
    return *value != (uint64_t)-1 || !PyErr_Occurred();
}

/* Prints one template of a row. Returns 0 with an exception set. */
static int
print(PyObject *packed, Row *row, Out *out)
{
    const char *template = PyBytes_AS_STRING(packed), *end = template + PyBytes_GET_SIZE(packed);
    size_t label_size = PyBytes_GET_SIZE(row->labels);
    uint64_t value = 0, total = 0;
    while (end - template > 2) {
        uint16_t length;
        memcpy(&length, template, sizeof length);
        int kind = template[2];
        template += 3;
        if (length > end - template || (kind != NOTHING && (kind < INTEGER || kind > LABELS))) {
            PyErr_SetString(PyExc_ValueError, "fill: not a packed template");
            return 0;
        }
        if (!make_room(out, length + label_size + MOST_PRINTED))
            return 0;
        memcpy(out->at, template, length);
        out->at += length;
        template += length;
        if ((kind == INTEGER || kind == SECONDS || kind == CUMULATIVE) && !take(row, &value))
            return 0;
        if (kind == LABELS) {
            memcpy(out->at, PyBytes_AS_STRING(row->labels), label_size);
            out->at += label_size;
        } else if (kind == INTEGER)
            out->at = printed(out->at, value);
        else if (kind == SECONDS)
            out->at = printed_seconds(out->at, value);
        else if (kind == CUMULATIVE || kind == TOTAL)
            out->at = printed(out->at, total += kind == CUMULATIVE ? value : 0);
        else if (kind == NEW_SUM)
            total = 0;
    }
    if (template != end) {
        PyErr_SetString(PyExc_ValueError, "fill: not a packed template");
        return 0;
    }
    return 1;
}

/* -- Making templates (exporter.templates). */

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

/* Returns None if the template has too long a text. */
static PyObject *
packed(PyObject *template)
{
    const char *at = PyBytes_AS_STRING(template), *end = at + PyBytes_GET_SIZE(template);
    Py_ssize_t size = 3;
    for (const char *one = at; one < end; one++)
        size += *one >= INTEGER && *one <= LABELS ? 3 : 1;
    PyObject *result = PyBytes_FromStringAndSize(NULL, size);
    if (result == NULL)
        return NULL;
    char *piece = PyBytes_AS_STRING(result), *out = piece + 3;
    for (; at < end && piece != NULL; at++) {
        if (*at >= INTEGER && *at <= LABELS) {
            piece = end_piece(piece, out, *at);
            out += 3;
        } else
            *out++ = *at;
    }
    if (piece == NULL || end_piece(piece, out, NOTHING) == NULL)
        Py_SETREF(result, Py_NewRef(Py_None));
    return result;
}

static PyObject *
pack_each(PyObject *Py_UNUSED(module), PyObject *templates)
{
    if (!PyTuple_Check(templates)) {
        PyErr_SetString(PyExc_TypeError, "pack_each(templates: tuple)");
        return NULL;
    }
    PyObject *results = PyTuple_New(PyTuple_GET_SIZE(templates));
    for (Py_ssize_t i = 0; results != NULL && i < PyTuple_GET_SIZE(templates); i++) {
        PyObject *template = PyTuple_GET_ITEM(templates, i), *result = NULL;
        if (PyBytes_Check(template))
            result = packed(template);
        else
            PyErr_SetString(PyExc_TypeError, "pack_each: templates must be bytes");
        if (result == NULL)
            Py_CLEAR(results);
        else if (result == Py_None) {
            Py_DECREF(results);
            return result;
        } else
            PyTuple_SET_ITEM(results, i, result);
    }
    return results;
}

/* Fills in a row from a tuple (templates, labels, values, ...). Returns the templates, or NULL with an exception set. */
static PyObject *
row_of(PyObject *object, Row *row)
{
    if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) >= 3) {
        PyObject *templates = PyTuple_GET_ITEM(object, 0);
        *row = (Row){PyTuple_GET_ITEM(object, 1), PyTuple_GET_ITEM(object, 2), 0};
        if (PyTuple_Check(templates) && PyBytes_Check(row->labels) && PyTuple_Check(row->values))
            return templates;
    }
    PyErr_SetString(PyExc_TypeError, "fill_columns(rows: list of (templates: tuple, labels: bytes, values: tuple, ...))");
    return NULL;
}

/* Prints one template of all rows. Returns 0 with an exception set. */
static int
print_column(PyObject *rows, Py_ssize_t column, Row *row, Out *out)
{
    out->at = out->begin;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        PyObject *template = PyTuple_GET_ITEM(PyTuple_GET_ITEM(PyList_GET_ITEM(rows, i), 0), column);
        if (!PyBytes_Check(template)) {
            PyErr_SetString(PyExc_TypeError, "fill_columns: templates must be bytes");
            return 0;
        }
        if (!print(template, &row[i], out))
            return 0;
    }
    return 1;
}

static PyObject *
fill_columns(PyObject *Py_UNUSED(module), PyObject *rows)
{
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "fill_columns(rows: list)");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(rows), columns = 0;
    PyObject *texts = NULL;
    Out out = {0};
    Row *row = PyMem_Calloc(count + 1, sizeof *row);
    if (row == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *templates = row_of(PyList_GET_ITEM(rows, i), &row[i]);
        if (templates == NULL)
            goto end;
        if (i > 0 && PyTuple_GET_SIZE(templates) != columns) {
            PyErr_SetString(PyExc_ValueError, "fill_columns: rows must have as many templates as the first");
            goto end;
        }
        columns = PyTuple_GET_SIZE(templates);
    }
    texts = PyList_New(columns);
    for (Py_ssize_t j = 0; texts != NULL && j < columns; j++) {
        PyObject *text = print_column(rows, j, row, &out) ? PyBytes_FromStringAndSize(out.begin, out.at - out.begin) : NULL;
        if (text == NULL)
            Py_CLEAR(texts);
        else
            PyList_SET_ITEM(texts, j, text);
    }
    for (Py_ssize_t i = 0; texts != NULL && i < count; i++)
        if (row[i].used != PyTuple_GET_SIZE(row[i].values)) {
            PyErr_SetString(PyExc_ValueError, "fill: more values than places");
            Py_CLEAR(texts);
        }
end:
    PyMem_Free(out.begin);
    PyMem_Free(row);
    return texts;
}

static PyObject *
fill_numbers(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_Check(args[0]) || !PyList_Check(args[1]) || !PyList_Check(args[2]) ||
        PyList_GET_SIZE(args[1]) != PyList_GET_SIZE(args[2])) {
        PyErr_SetString(PyExc_TypeError, "fill_numbers(template: bytes, labels: list, values: list), lists of one length");
        return NULL;
    }
    PyObject *text = NULL;
    Out out = {0};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); i++) {
        PyObject *value = PyList_GET_ITEM(args[2], i), *labels = PyList_GET_ITEM(args[1], i);
        if (value == Py_None)
            continue;
        if (!PyBytes_Check(labels)) {
            PyErr_SetString(PyExc_TypeError, "fill_numbers: labels must be bytes");
            goto end;
        }
        Row row = {labels, PyTuple_Pack(1, value), 0};
        int whole = row.values != NULL && print(args[0], &row, &out);
        Py_XDECREF(row.values);
        if (!whole)
            goto end;
    }
    text = PyBytes_FromStringAndSize(out.begin, out.at - out.begin);
end:
    PyMem_Free(out.begin);
    return text;
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
    {"pack_each", pack_each, METH_O, "Templates for the next two, or None."},
    {"fill_columns", fill_columns, METH_O, "Texts of the templates of many devices, a column for each template."},
    {"fill_numbers", (PyCFunction)(void (*)(void))fill_numbers, METH_FASTCALL, "Prints a template for each labels and value."},
    {"grow", (PyCFunction)(void (*)(void))grow, METH_FASTCALL, "Adds each increase in place; False if any number fell or jumped."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "lustre.formats._texts", NULL, 0, methods, NULL, NULL, NULL, NULL};

#define FORMAT(name, value) "si"
#define PAIR(name, value) , #name, value

PyMODINIT_FUNC
PyInit__texts(void)
{
    PyObject *made = PyModule_Create(&module), *opcodes = Py_BuildValue("{" OPCODES(FORMAT) "}" OPCODES(PAIR));
    if (made != NULL && (opcodes == NULL || PyModule_AddObjectRef(made, "OPCODES", opcodes) < 0))
        Py_CLEAR(made);
    Py_XDECREF(opcodes);
    return made;
}
