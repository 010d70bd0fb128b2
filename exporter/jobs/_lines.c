/* Converts a job's block of job_stats to finished lines, or to numbers, in one pass. It reads the usual form of blocks.
 * For any other block it returns None, and exporter.jobs.statistics reads the block. A test compares both readers with
 * blocks of every kind: whole, truncated and damaged.
 *
 *     lines(block, labels, names) -> (name, (reads, writes, operations, seconds, sizes)) | None
 *     numbers(block) -> (start_time, shape, operations, values) | None
 *
 * labels is the label text of fs and target. names are the five families in the order of the chunks. shape describes the
 * values: one line per counter of bytes, with its name and the bounds of its sizes, and a last line with the names of the
 * operations. The values are sums of bytes, samples of the operations (operations is the sum of these), microseconds of
 * the operations, and counts of the sizes. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define MOST_DIGITS 20  /* of a 64-bit number, as in the Python readers */
#define LONGEST_BLOCK (1 << 15) /* a job with every counter takes a tenth of this, so buffers stay small */
#define MOST_NAMES 64   /* counters of one job; Lustre has some twenty */
#define MOST_SIZES 32   /* of a table; sizes double and end below LAST_BUCKET, so fewer occur */
#define MOST_OF_TIME 40 /* characters */
#define LAST_BUCKET (1ull << 31) /* also counts all larger sizes; the Python readers handle it */

/* -- Reading: each function skips the element that it names, and returns whether it was present. */

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

/* Whether a number is beyond 63 bits, or a sum that reached its limit. The Python readers handle these. */
static int
beyond(Word found)
{
    return found.size >= 20 || (found.size == 19 && memcmp(found.at, "9223372036854775807", 19) >= 0);
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
time_line(Text *text, const char *key, Word *found)
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
    if (text->at == begin)
        return 0;
    found->at = text->at;
    while (text->at < text->end && (Py_ISDIGIT(*text->at) || *text->at == '.'))
        text->at++;
    found->size = text->at - found->at;
    return found->size >= 1 && found->size <= MOST_OF_TIME && rest_of_line(text, &ignored);
}

static int
times(Text *text, Word *start)
{
    Word ignored;
    return time_line(text, "snapshot_time", &ignored) && time_line(text, "start_time", start) &&
           time_line(text, "elapsed_time", &ignored);
}

/* Reads the job id as a label value, without the quotes of newer releases. Fails if the id needs escaping. */
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
    int is_bytes, reads;
} Operation;

/* The exact text of a counter at zero. Two thirds of most blocks are such counters. */
#define ZEROS ", min:        0, max:        0, sum:                0, sumsq:                  0"
#define UNUSED "{ samples:           0, unit: usecs" ZEROS " }\n"
#define UNUSED_BYTES "{ samples:           0, unit: bytes" ZEROS ", hist: {  } }\n"

/* "  read:  { samples: 3, unit: usecs, min: 1, max: 9, sum: 12, sumsq: 90 }", of bytes also with ", hist: { 4K: 3 }". */
static int
operation(Text *text, Operation *found)
{
    Word limit;
    if (!blanks(text) || !word(text, &found->name) || !LITERAL(text, ":"))
        return 0;
    blanks(text);
    if ((found->is_bytes = LITERAL(text, UNUSED_BYTES)) || LITERAL(text, UNUSED)) {
        found->samples = (Word){"0", 1};
        return 1;
    }
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
        !signed_number(text) || beyond(found->sum) || beyond(found->samples))
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

typedef struct {
    Word names[MOST_NAMES];
    size_t named;
    int sums[2];
} Seen;

/* Reads the next nonzero counter. Returns 1 if found, 0 at the end, -1 for another form, such as a repeated counter. */
static int
next_used(Text *text, Seen *seen, Operation *found)
{
    while (text->at < text->end) {
        if (!operation(text, found))
            return -1;
        if (found->samples.size == 1 && found->samples.at[0] == '0')
            continue;
        found->reads = is(found->name, "read_bytes");
        int writes = is(found->name, "write_bytes");
        if (found->is_bytes != (found->reads || writes))
            return -1;
        if (found->is_bytes)
            return seen->sums[writes]++ ? -1 : 1;
        for (size_t i = 0; i < seen->named; i++)
            if (seen->names[i].size == found->name.size &&
                memcmp(seen->names[i].at, found->name.at, found->name.size) == 0)
                return -1;
        if (seen->named == MOST_NAMES)
            return -1;
        seen->names[seen->named++] = found->name;
        return 1;
    }
    return 0;
}

static int
value_of(Word digits, uint64_t *value)
{
    if (beyond(digits)) /* left to Python */
        return 0;
    *value = 0;
    for (size_t i = 0; i < digits.size; i++)
        *value = 10 * *value + (digits.at[i] - '0');
    return 1;
}

typedef struct {
    uint64_t upper, count;
} Size;

/* Reads the next size of " 4K: 19, 1M: 64 ". Sizes must rise. Returns 1 if found, 0 at the end, -1 for another form. */
static int
next_size(Text *text, int first, Size *size)
{
    Text after = *text;
    Word found;
    uint64_t upper;
    blanks(&after);
    if (after.at == after.end)
        return 0;
    if (first)
        *text = after;
    else if (!LITERAL(text, ", "))
        return -1;
    if (!digits(text, &found) || !value_of(found, &upper) || text->at == text->end)
        return -1;
    int shift = *text->at == 'K' ? 10 : *text->at == 'M' ? 20 : *text->at == 'G' ? 30 : *text->at == 'T' ? 40 : 0;
    text->at += shift != 0;
    if (upper >= LAST_BUCKET >> shift || (!first && upper << shift <= size->upper))
        return -1;
    size->upper = upper << shift;
    return LITERAL(text, ": ") && digits(text, &found) && value_of(found, &size->count) ? 1 : -1;
}

/* -- Writing. */

typedef struct {
    char *data;
    size_t used, room;
} Out;

/* Reserves space, or returns NULL without memory. Buffers are reused for each block, which fills one or two kilobytes. */
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

/* Writes " 4K: 19, 1M: 64 " as cumulative buckets with sum and count. Returns 1 if done, 0 for another form, -1 without
 * memory. */
static int
put_sizes(Out *out, Word family, Word labels, const char *direction, Word sizes, Word sum)
{
    Text text = {sizes.at, sizes.at + sizes.size};
    Size size = {0, 0};
    uint64_t total = 0;
    int first = 1, more;
    for (; (more = next_size(&text, first, &size)) == 1; first = 0) {
        if (total + size.count < total)
            return 0;
        total += size.count;
        if (!begin_size(out, family, "_bucket", labels, direction) || !PUT(out, ",le=\"") || !put_count(out, size.upper) ||
            !PUT(out, ".0\"} ") || !put_count(out, total) || !PUT(out, "\n"))
            return -1;
    }
    if (more < 0 || first)
        return more == 0;
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
    Seen seen = {.named = 0, .sums = {0, 0}};
    Word labels, start;
    Operation found;
    int more;

    if (!job_id(text, id) || !times(text, &start))
        return 0;
    if (!put_word(&outs[LABELS], node) || !PUT(&outs[LABELS], ",jobid=\"") || !put_word(&outs[LABELS], *id) ||
        !PUT(&outs[LABELS], "\""))
        return -1;
    labels.at = outs[LABELS].data;
    labels.size = outs[LABELS].used;
    while ((more = next_used(text, &seen, &found)) == 1) {
        if (found.is_bytes) {
            Out *out = &outs[found.reads ? READS : WRITES];
            int done = put_sizes(
                &outs[SIZES], families[SIZES], labels, found.reads ? "read" : "write", found.sizes, found.sum);
            if (done < 1)
                return done;
            if (!put_word(out, families[found.reads ? READS : WRITES]) || !PUT(out, "{") || !put_word(out, labels) ||
                !PUT(out, "} ") || !put_word(out, found.sum) || !PUT(out, "\n"))
                return -1;
            continue;
        }
        if (!put_operation(&outs[OPERATIONS], families[OPERATIONS], labels, found.name) ||
            !put_word(&outs[OPERATIONS], found.samples) || !PUT(&outs[OPERATIONS], "\n") ||
            !put_operation(&outs[SECONDS], families[SECONDS], labels, found.name) ||
            !put_seconds(&outs[SECONDS], found.sum) || !PUT(&outs[SECONDS], "\n"))
            return -1;
    }
    return more == 0;
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

/* -- A block in numbers. */

typedef struct {
    uint64_t operations, sums[2], samples[MOST_NAMES], usecs[MOST_NAMES], sizes[2 * MOST_SIZES];
    size_t summed, counted, sized;
} Numbers;

/* Adds bounds to the shape and counts to the numbers. Returns 1 if done, 0 for another form, -1 without memory. */
static int
count_sizes(Word sizes, Numbers *numbers, Out *shape)
{
    Text text = {sizes.at, sizes.at + sizes.size};
    Size size = {0, 0};
    int more;
    for (size_t i = 0; (more = next_size(&text, i == 0, &size)) == 1; i++) {
        if (i == MOST_SIZES)
            return 0;
        numbers->sizes[numbers->sized++] = size.count;
        if (!PUT(shape, " ") || !put_count(shape, size.upper))
            return -1;
    }
    return more == 0;
}

static int
count(Text *text, Word *start, Numbers *numbers, Out *shape)
{
    Seen seen = {.named = 0, .sums = {0, 0}};
    Operation found;
    Word ignored;
    int more, done;

    if (!rest_of_line(text, &ignored) || !times(text, start))
        return 0;
    while ((more = next_used(text, &seen, &found)) == 1) {
        if (found.is_bytes) {
            if (!value_of(found.sum, &numbers->sums[numbers->summed++]))
                return 0;
            if (!put_word(shape, found.name))
                return -1;
            if ((done = count_sizes(found.sizes, numbers, shape)) < 1)
                return done;
            if (!PUT(shape, "\n"))
                return -1;
            continue;
        }
        if (!value_of(found.samples, &numbers->samples[numbers->counted]) ||
            !value_of(found.sum, &numbers->usecs[numbers->counted]) ||
            numbers->operations > UINT64_MAX - numbers->samples[numbers->counted])
            return 0;
        numbers->operations += numbers->samples[numbers->counted++];
    }
    for (size_t i = 0; more == 0 && i < seen.named; i++)
        if ((i && !PUT(shape, " ")) || !put_word(shape, seen.names[i]))
            return -1;
    return more == 0;
}

static int
add(PyObject *values, Py_ssize_t *at, const uint64_t *numbers, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(numbers[i]);
        if (value == NULL)
            return 0;
        PyTuple_SET_ITEM(values, (*at)++, value);
    }
    return 1;
}

static PyObject *
counted(Word start, const Numbers *numbers, const Out *shape)
{
    Py_ssize_t at = 0;
    PyObject *values = PyTuple_New(numbers->summed + 2 * numbers->counted + numbers->sized);
    if (values == NULL)
        return NULL;
    if (!add(values, &at, numbers->sums, numbers->summed) || !add(values, &at, numbers->samples, numbers->counted) ||
        !add(values, &at, numbers->usecs, numbers->counted) || !add(values, &at, numbers->sizes, numbers->sized)) {
        Py_DECREF(values);
        return NULL;
    }
    return Py_BuildValue(
        "y#y#KN", start.at, (Py_ssize_t)start.size, shape->used ? shape->data : "", (Py_ssize_t)shape->used,
        (unsigned long long)numbers->operations, values);
}

static PyObject *
numbers(PyObject *Py_UNUSED(module), PyObject *block)
{
    static Out shape; /* the interpreter's lock is held throughout */
    Numbers numbers;
    Word start;

    if (!PyBytes_Check(block)) {
        PyErr_SetString(PyExc_TypeError, "numbers(block: bytes)");
        return NULL;
    }
    Text text = {PyBytes_AS_STRING(block), PyBytes_AS_STRING(block) + PyBytes_GET_SIZE(block)};
    shape.used = numbers.operations = numbers.summed = numbers.counted = numbers.sized = 0;
    int done = PyBytes_GET_SIZE(block) > LONGEST_BLOCK ? 0 : count(&text, &start, &numbers, &shape);
    if (done < 0)
        return PyErr_NoMemory();
    if (done == 0)
        Py_RETURN_NONE;
    return counted(start, &numbers, &shape);
}

static PyMethodDef methods[] = {
    {"lines", lines, METH_VARARGS, "The job id as a label value and the finished lines of a job; None for an unusual block."},
    {"numbers", numbers, METH_O, "Start time, shape, number of operations and values of a job; None for an unusual block."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "exporter.jobs._lines", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__lines(void)
{
    return PyModule_Create(&module);
}
