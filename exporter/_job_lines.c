/* A job's block of job_stats to finished lines, in one pass: what exporter.job_lines does with regular expressions and
 * templates, for the form nearly all blocks have. Whatever differs from that form gives None and is left to it; nothing
 * is guessed here. A test compares both over blocks of every kind, whole, cut and mangled.
 *
 *     lines(block, labels, names) -> (name, (reads, writes, operations, seconds, sizes)) | None
 *
 * labels is the text of fs and target, names are the five families in the order of the chunks. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define MOST_DIGITS 20  /* of a 64-bit number, as in the Python readers */
#define LONGEST_BLOCK (1 << 15) /* a job of every counter takes a tenth of that; buffers stay as small as they have to be */
#define MOST_NAMES 64   /* counters of one job; Lustre has some twenty */
#define LAST_BUCKET (1ull << 31) /* counts everything larger too, and is left to the readers in Python */

/* -- Reading: each moves on over what it names and says whether it was there. */

typedef struct {
    const char *at, *end;
} Text;

typedef struct {
    const char *at;
    size_t size;
} Word;

static int
literal(Text *text, const char *expected, size_t size)
{
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, expected, size) != 0)
        return 0;
    text->at += size;
    return 1;
}
#define LITERAL(text, expected) literal(text, expected, sizeof(expected) - 1)

static int
blanks(Text *text)
{
    const char *begin = text->at;
    while (text->at < text->end && *text->at == ' ')
        text->at++;
    return text->at > begin;
}

static int
digits(Text *text, Word *found)
{
    found->at = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9')
        text->at++;
    found->size = text->at - found->at;
    return found->size >= 1 && found->size <= MOST_DIGITS;
}

static int
number(Text *text, Word *found)
{
    blanks(text);
    return digits(text, found);
}

static int
signed_number(Text *text)
{
    Word ignored;
    blanks(text);
    if (text->at < text->end && *text->at == '-')
        text->at++;
    return digits(text, &ignored);
}

static int
word(Text *text, Word *found)
{
    found->at = text->at;
    while (text->at < text->end && (Py_ISALNUM(*text->at) || *text->at == '_'))
        text->at++;
    found->size = text->at - found->at;
    return found->size > 0;
}

static int
rest_of_line(Text *text, Word *found)
{
    const char *end = memchr(text->at, '\n', text->end - text->at);
    if (end == NULL)
        return 0;
    found->at = text->at;
    found->size = end - text->at;
    text->at = end + 1;
    return 1;
}

static int
is(Word found, const char *expected)
{
    return found.size == strlen(expected) && memcmp(found.at, expected, found.size) == 0;
}

/* A line like "  snapshot_time:   1795218489.325362688 secs.nsecs"; 2.15 does not indent it. */
static int
time_line(Text *text, const char *key)
{
    const char *begin;
    Word ignored;
    blanks(text);
    if (!literal(text, key, strlen(key)))
        return 0;
    begin = text->at;
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
        text->at++;
    if (text->at < text->end && *text->at == ':') {
        begin = ++text->at;
        while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
            text->at++;
    }
    return text->at > begin && text->at < text->end && (Py_ISDIGIT(*text->at) || *text->at == '.') &&
           rest_of_line(text, &ignored);
}

/* The id as a label's value: without the quotes of newer releases; none if it would have to be escaped. */
static int
job_id(Text *text, Word *found)
{
    size_t i;
    int quoted;
    if (!LITERAL(text, "- job_id:          ") || !rest_of_line(text, found))
        return 0;
    quoted = found->size >= 2 && found->at[0] == '"' && found->at[found->size - 1] == '"';
    if (quoted) {
        found->at++;
        found->size -= 2;
    }
    for (i = 0; i < found->size; i++) {
        unsigned char c = found->at[i];
        if (c < ' ' + quoted || c > '~' || c == '"' || c == '\\')
            return 0;
    }
    return 1;
}

typedef struct {
    Word name, samples, sum, sizes;
    int is_bytes;
} Operation;

/* "  read:  { samples: 3, unit: usecs, min: 1, max: 9, sum: 12, sumsq: 90 }", of bytes also with ", hist: { 4K: 3 }". */
static int
operation(Text *text, Operation *found)
{
    Word limit;
    if (!blanks(text) || !word(text, &found->name) || !LITERAL(text, ":"))
        return 0;
    blanks(text);
    if (!LITERAL(text, "{ samples:") || !number(text, &found->samples) || !LITERAL(text, ", unit:") || !blanks(text))
        return 0;
    found->is_bytes = LITERAL(text, "bytes");
    if (!found->is_bytes && !LITERAL(text, "usecs"))
        return 0;
    found->sizes = (Word){"", 0};
    if (found->samples.size == 1 && found->samples.at[0] == '0') {
        static const char *const keys[] = {", min:", ", max:", ", sum:", ", sumsq:"};
        for (int i = 0; i < 4; i++)
            if (!literal(text, keys[i], strlen(keys[i])) || !number(text, &limit) || !is(limit, "0"))
                return 0;
        if (LITERAL(text, ", hist: {")) {
            blanks(text);
            if (!LITERAL(text, "}"))
                return 0;
        }
        return LITERAL(text, " }\n");
    }
    if (found->samples.at[0] == '0' || !LITERAL(text, ", min:") || !signed_number(text) || !LITERAL(text, ", max:") ||
        !signed_number(text) || !LITERAL(text, ", sum:") || !number(text, &found->sum) || !LITERAL(text, ", sumsq:") ||
        !signed_number(text) || is(found->sum, "9223372036854775807")) /* ran into the end of 64 bits: no sum */
        return 0;
    if (found->is_bytes && LITERAL(text, ", hist: {")) {
        found->sizes.at = text->at;
        while (text->at < text->end && *text->at != '}' && *text->at != '\n')
            text->at++;
        found->sizes.size = text->at - found->sizes.at;
        if (!LITERAL(text, "}"))
            return 0;
    }
    return LITERAL(text, " }\n");
}

/* -- Writing. */

typedef struct {
    char *data;
    size_t used, room;
} Out;

/* Room for so much more, or NULL without memory. Buffers are kept from block to block: a block fills one or two kilobytes. */
static char *
more(Out *out, size_t size)
{
    char *place;
    if (out->room - out->used < size) {
        size_t room = 2 * (out->used + size) + 4096;
        char *data = PyMem_Realloc(out->data, room);
        if (data == NULL)
            return NULL;
        out->data = data;
        out->room = room;
    }
    place = out->data + out->used;
    out->used += size;
    return place;
}

static int
put(Out *out, const char *data, size_t size)
{
    char *place = more(out, size);
    if (place != NULL)
        memcpy(place, data, size);
    return place != NULL;
}
#define PUT(out, text) put(out, text, sizeof(text) - 1)

static int
put_word(Out *out, Word found)
{
    return put(out, found.at, found.size);
}

static int
put_count(Out *out, uint64_t value)
{
    char text[MOST_DIGITS];
    size_t at = sizeof text;
    do
        text[--at] = '0' + value % 10;
    while (value /= 10);
    return put(out, text + at, sizeof text - at);
}

/* Microseconds as seconds, by moving the decimal point in the digits. */
static int
put_seconds(Out *out, Word usec)
{
    if (usec.size > 6)
        return put(out, usec.at, usec.size - 6) && PUT(out, ".") && put(out, usec.at + usec.size - 6, 6);
    return PUT(out, "0.") && put(out, "000000", 6 - usec.size) && put_word(out, usec);
}

static int
put_operation(Out *out, Word family, Word labels, Word name)
{
    return put_word(out, family) && PUT(out, "{") && put_word(out, labels) && PUT(out, ",operation=\"") &&
           put_word(out, name) && PUT(out, "\"} ");
}

static int
begin_size(Out *out, Word family, const char *suffix, Word labels, const char *direction)
{
    return put_word(out, family) && put(out, suffix, strlen(suffix)) && PUT(out, "{") && put_word(out, labels) &&
           PUT(out, ",direction=\"") && put(out, direction, strlen(direction)) && PUT(out, "\"");
}

static int
value_of(Word digits, uint64_t *value)
{
    if (digits.size == MOST_DIGITS) /* near the end of 64 bits: not here */
        return 0;
    *value = 0;
    for (size_t i = 0; i < digits.size; i++)
        *value = 10 * *value + (digits.at[i] - '0');
    return 1;
}

/* " 4K: 19, 1M: 64 " as cumulative buckets with sum and count. 1 done, 0 another form, -1 no memory. */
static int
put_sizes(Out *out, Word family, Word labels, const char *direction, Word sizes, Word sum)
{
    Text text = {sizes.at, sizes.at + sizes.size};
    uint64_t upper, last = 0, count, total = 0;
    Word size;
    blanks(&text);
    if (sizes.size == 0 || text.at == text.end)
        return 1;
    for (int first = 1; text.at < text.end; first = 0) {
        if ((!first && !LITERAL(&text, ", ")) || !digits(&text, &size) || !value_of(size, &upper) || text.at == text.end)
            return 0;
        int shift = *text.at == 'K' ? 10 : *text.at == 'M' ? 20 : *text.at == 'G' ? 30 : *text.at == 'T' ? 40 : 0;
        text.at += shift != 0;
        if (upper >= LAST_BUCKET >> shift || (!first && upper << shift <= last))
            return 0;
        last = upper << shift;
        if (!LITERAL(&text, ": ") || !digits(&text, &size) || !value_of(size, &count) || total + count < total)
            return 0;
        total += count;
        if (!begin_size(out, family, "_bucket", labels, direction) || !PUT(out, ",le=\"") || !put_count(out, last) ||
            !PUT(out, ".0\"} ") || !put_count(out, total) || !PUT(out, "\n"))
            return -1;
        Text after = text;
        if (blanks(&after) && after.at == after.end)
            break;
    }
    return begin_size(out, family, "_bucket", labels, direction) && PUT(out, ",le=\"+Inf\"} ") && put_count(out, total) &&
           PUT(out, "\n") && begin_size(out, family, "_sum", labels, direction) && PUT(out, "} ") && put_word(out, sum) &&
           PUT(out, "\n") && begin_size(out, family, "_count", labels, direction) && PUT(out, "} ") &&
           put_count(out, total) && PUT(out, "\n") ? 1 : -1;
}

/* -- A block. */

enum { READS, WRITES, OPERATIONS, SECONDS, SIZES, CHUNKS, LABELS = CHUNKS, BUFFERS };

static int
render(Text *text, Word node, const Word *families, Out *outs, Word *id)
{
    Word names[MOST_NAMES], labels;
    size_t named = 0;
    int seen[2] = {0, 0};
    Operation found;

    if (!job_id(text, id) || !time_line(text, "snapshot_time") || !time_line(text, "start_time") ||
        !time_line(text, "elapsed_time"))
        return 0;
    if (!put_word(&outs[LABELS], node) || !PUT(&outs[LABELS], ",job=\"") || !put_word(&outs[LABELS], *id) ||
        !PUT(&outs[LABELS], "\""))
        return -1;
    labels.at = outs[LABELS].data;
    labels.size = outs[LABELS].used;
    while (text->at < text->end) {
        if (!operation(text, &found))
            return 0;
        if (found.samples.size == 1 && found.samples.at[0] == '0')
            continue;
        int reads = is(found.name, "read_bytes"), writes = is(found.name, "write_bytes");
        if (found.is_bytes != (reads || writes) || (found.is_bytes && seen[writes]++))
            return 0;
        if (found.is_bytes) {
            Out *out = &outs[reads ? READS : WRITES];
            int done = put_sizes(
                &outs[SIZES], families[SIZES], labels, reads ? "read" : "write", found.sizes, found.sum);
            if (done < 1)
                return done;
            if (!put_word(out, families[reads ? READS : WRITES]) || !PUT(out, "{") || !put_word(out, labels) ||
                !PUT(out, "} ") || !put_word(out, found.sum) || !PUT(out, "\n"))
                return -1;
            continue;
        }
        for (size_t i = 0; i < named; i++)
            if (names[i].size == found.name.size && memcmp(names[i].at, found.name.at, found.name.size) == 0)
                return 0;
        if (named == MOST_NAMES)
            return 0;
        names[named++] = found.name;
        if (!put_operation(&outs[OPERATIONS], families[OPERATIONS], labels, found.name) ||
            !put_word(&outs[OPERATIONS], found.samples) || !PUT(&outs[OPERATIONS], "\n") ||
            !put_operation(&outs[SECONDS], families[SECONDS], labels, found.name) ||
            !put_seconds(&outs[SECONDS], found.sum) || !PUT(&outs[SECONDS], "\n"))
            return -1;
    }
    return 1;
}

static PyObject *
found(Word id, const Out *outs)
{
    PyObject *name = PyBytes_FromStringAndSize(id.at, id.size), *chunks = PyTuple_New(CHUNKS), *both = NULL;
    for (Py_ssize_t i = 0; chunks != NULL && i < CHUNKS; i++) {
        PyObject *chunk = PyBytes_FromStringAndSize(outs[i].data, outs[i].used);
        if (chunk == NULL)
            Py_CLEAR(chunks);
        else
            PyTuple_SET_ITEM(chunks, i, chunk);
    }
    if (name != NULL && chunks != NULL)
        both = PyTuple_Pack(2, name, chunks);
    Py_XDECREF(name);
    Py_XDECREF(chunks);
    return both;
}

static PyObject *
lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    static Out outs[BUFFERS]; /* the interpreter's lock is held throughout */
    Py_buffer block, node;
    Word families[CHUNKS], id = {"", 0};
    PyObject *result = NULL, *names;
    int done = -1;

    if (!PyArg_ParseTuple(args, "y*y*O!", &block, &node, &PyTuple_Type, &names))
        return NULL;
    for (Py_ssize_t i = 0; i < CHUNKS; i++) {
        PyObject *name = PyTuple_GET_SIZE(names) == CHUNKS ? PyTuple_GET_ITEM(names, i) : NULL;
        if (name == NULL || !PyBytes_Check(name)) {
            PyErr_SetString(PyExc_TypeError, "names: five bytes objects, one a family");
            goto end;
        }
        families[i] = (Word){PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)};
    }
    for (int i = 0; i < BUFFERS; i++)
        outs[i].used = 0;
    Text text = {block.buf, (const char *)block.buf + block.len};
    done = block.len > LONGEST_BLOCK ? 0 : render(&text, (Word){node.buf, node.len}, families, outs, &id);
    if (done < 0)
        PyErr_NoMemory();
    else if (done == 0)
        result = Py_NewRef(Py_None);
    else
        result = found(id, outs);
end:
    PyBuffer_Release(&block);
    PyBuffer_Release(&node);
    return result;
}

static PyMethodDef methods[] = {
    {"lines", lines, METH_VARARGS, "The id as a label's value and finished lines of a job; None for an unusual block."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "exporter._job_lines", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__job_lines(void)
{
    return PyModule_Create(&module);
}
