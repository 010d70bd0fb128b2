/* Converts a job's block of job_stats to finished lines, or to numbers, in one pass. It reads the usual form of blocks.
 * For any other block it returns None, and exporter.jobs.statistics reads the block. A test compares both readers with
 * blocks of every kind: whole, truncated and damaged.
 *
 *     Table(labels, names, fallback, active_at)         all jobs of a target between scrapes; see "All jobs" below
 *     lines(block, labels, names) -> (name, (reads, writes, operations, seconds, sizes, started)) | None
 *     numbers(block) -> (start_time, shape, operations, values) | None
 *
 * labels is the label text of fs and target. names are the families in the order of the chunks. shape describes the
 * values: one line per counter of bytes, with its name and the bounds of its sizes, and a last line with the names of the
 * operations. The values are sums of bytes, samples of the operations (operations is the sum of these), microseconds of
 * the operations, and counts of the sizes. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

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
    const char *begin = text->at, *at = begin, *end = text->end;
    while (at < end && *at == ' ')
        at++;
    text->at = at; /* once, because a compiler cannot keep it in a register otherwise */
    return at > begin;
}

static int
digits(Text *text, Word *found)
{
    const char *at = text->at, *end = text->end;
    found->at = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    text->at = at;
    found->size = at - found->at;
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

/* The texts before the numbers of the counters of the last block, such as "  read_bytes:      ". Most blocks of a file
 * have the same counters, so comparing a text is enough to know the name. */
#define LONGEST_BEGIN 32
typedef struct {
    char text[LONGEST_BEGIN];
    unsigned char size, name_begin, name_size;
} Begin;

/* Reads the text before the numbers of a counter. */
static int
name_of_counter(Text *text, Begin *last, Word *name)
{
    const char *begin = text->at;
    if (last->size && literal(text, last->text, last->size)) {
        *name = (Word){begin + last->name_begin, last->name_size};
    } else {
        if (!blanks(text) || !word(text, name) || !LITERAL(text, ":"))
            return 0;
        blanks(text);
        last->size = 0;
        if (text->at - begin <= LONGEST_BEGIN) {
            *last = (Begin){.size = text->at - begin, .name_begin = name->at - begin, .name_size = name->size};
            memcpy(last->text, begin, last->size);
        }
    }
    blanks(text);
    return 1;
}

/* The exact text of a counter at zero. Two thirds of most blocks are such counters. */
#define ZEROS ", min:        0, max:        0, sum:                0, sumsq:                  0"
#define NO_SAMPLES "{ samples:           0, unit: "
#define UNUSED NO_SAMPLES "usecs" ZEROS " }\n"
#define UNUSED_BYTES NO_SAMPLES "bytes" ZEROS ", hist: {  } }\n"

/* Whether this is the usual text of a counter at zero. */
static int
unused(Text *text, int *is_bytes)
{
    const size_t at_unit = sizeof NO_SAMPLES - 1, at_zero = at_unit - (sizeof "0, unit: " - 1);
    if ((size_t)(text->end - text->at) < sizeof UNUSED - 1 || text->at[at_zero] != '0' || text->at[at_zero + 1] != ',')
        return 0;
    *is_bytes = text->at[at_unit] == 'b';
    return *is_bytes ? LITERAL(text, UNUSED_BYTES) : LITERAL(text, UNUSED);
}

/* "  read:  { samples: 3, unit: usecs, min: 1, max: 9, sum: 12, sumsq: 90 }", of bytes also with ", hist: { 4K: 3 }". */
static int
operation(Text *text, Begin *last, Operation *found)
{
    Word limit;
    if (!name_of_counter(text, last, &found->name))
        return 0;
    if (unused(text, &found->is_bytes)) {
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
    size_t named, line;
    int sums[2];
} Seen;

/* Reads the next nonzero counter. Returns 1 if found, 0 at the end, -1 for another form, such as a repeated counter. */
static int
next_used(Text *text, Seen *seen, Operation *found)
{
    static Begin begins[MOST_NAMES]; /* the interpreter's lock is held throughout */
    while (text->at < text->end) {
        if (!operation(text, &begins[seen->line++ % MOST_NAMES], found))
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

/* The line of a family with one series a job. */
static int
put_line(Out *out, Word family, Word labels, Word value)
{
    return put_word(out, family) && PUT(out, "{") && put_word(out, labels) && PUT(out, "} ") && put_word(out, value) &&
           PUT(out, "\n");
}

/* The text of a line up to the name of the operation, which is equal for all operations of a job. */
static int
put_prefix(Out *out, Word family, Word labels)
{
    out->used = 0;
    return put_word(out, family) && PUT(out, "{") && put_word(out, labels) && PUT(out, ",operation=\"");
}

static int
put_operation(Out *out, const Out *prefix, Word name)
{
    char *place = more(out, prefix->used + name.size + 3);
    if (place == NULL)
        return 0;
    memcpy(place, prefix->data, prefix->used);
    memcpy(place + prefix->used, name.at, name.size);
    memcpy(place + prefix->used + name.size, "\"} ", 3);
    return 1;
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

enum { READS, WRITES, OPERATIONS, SECONDS, SIZES, STARTED, CHUNKS, LABELS = CHUNKS, OF_OPERATIONS, OF_SECONDS, BUFFERS };

/* Whether a time has one point between digits. */
static int
is_plain(Word time)
{
    const char *point = memchr(time.at, '.', time.size), *end = time.at + time.size;
    return point != NULL && point > time.at && point + 1 < end && memchr(point + 1, '.', end - point - 1) == NULL;
}

static int
render(Text *text, Word node, const Word *families, Out *outs, Word *id)
{
    Seen seen = {.named = 0, .line = 0, .sums = {0, 0}};
    Word labels, start;
    Operation found;
    int more;

    if (!job_id(text, id) || !times(text, &start) || !is_plain(start))
        return 0;
    outs[LABELS].used = 0;
    if (!put_word(&outs[LABELS], node) || !PUT(&outs[LABELS], ",jobid=\"") || !put_word(&outs[LABELS], *id) ||
        !PUT(&outs[LABELS], "\""))
        return -1;
    labels.at = outs[LABELS].data;
    labels.size = outs[LABELS].used;
    if (!put_prefix(&outs[OF_OPERATIONS], families[OPERATIONS], labels) ||
        !put_prefix(&outs[OF_SECONDS], families[SECONDS], labels))
        return -1;
    while ((more = next_used(text, &seen, &found)) == 1) {
        if (found.is_bytes) {
            Out *out = &outs[found.reads ? READS : WRITES];
            int done = put_sizes(
                &outs[SIZES], families[SIZES], labels, found.reads ? "read" : "write", found.sizes, found.sum);
            if (done < 1)
                return done;
            if (!put_line(out, families[found.reads ? READS : WRITES], labels, found.sum))
                return -1;
            continue;
        }
        if (!put_operation(&outs[OPERATIONS], &outs[OF_OPERATIONS], found.name) ||
            !put_word(&outs[OPERATIONS], found.samples) || !PUT(&outs[OPERATIONS], "\n") ||
            !put_operation(&outs[SECONDS], &outs[OF_SECONDS], found.name) ||
            !put_seconds(&outs[SECONDS], found.sum) || !PUT(&outs[SECONDS], "\n"))
            return -1;
    }
    if ((seen.named || seen.sums[0] || seen.sums[1]) && !put_line(&outs[STARTED], families[STARTED], labels, start))
        return -1;
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
            PyErr_SetString(PyExc_TypeError, "names: bytes objects, one a family");
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
    Seen seen = {.named = 0, .line = 0, .sums = {0, 0}};
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

/* -- All jobs of a target. A table reads the pieces of a file and keeps the finished lines of each job. Lines of a job
 * whose text is unchanged are reused. Neighbouring jobs form a group, whose lines are one bytes object for each family,
 * so that an unchanged group costs nothing. A group ends at a job whose hash says so, so that a job that comes or goes
 * changes one group only.
 *
 *     table.begin(since)                    jobs that were not active since then get no lines
 *     table.read(text, begin, end, last)    reads the whole jobs; returns the position of the rest
 *     table.newest() -> int                 the time of the last activity of any job; 0 without jobs
 *     table.end(since) -> (jobs, shown, skipped lines, groups, reused groups, five lists of bytes) | None
 *
 * None means that two jobs have the same name, or that a job that became active again has no lines: then the caller
 * reads the file again with the Python readers. Until end succeeds, the jobs of the previous reading stay as they were.
 * fallback(block) -> (name, chunks, skipped lines) renders a block of an unusual form, and the job of an exporter.
 * active_at(lines) -> int reads a time of an unusual form. */

#define KEY "- job_id:"
#define OWN_NAME "lustre-exporter"
#define TIME "  snapshot_time:   "
#define MOST_OF_GROUP 256
#define LEAST_OF_GROUP 16
#define ENDS_GROUP(id) ((id) >> 58 == 0) /* one in 64 */
#define UNKNOWN_TIME -1

typedef struct {
    uint64_t id, times, mark, name; /* hashes of the first line, the second line, the text (0: unknown), the label */
    int64_t active_at;
    uint32_t group, begin[CHUNKS], size[CHUNKS], skipped;
    int shown;
} Job;

typedef struct {
    PyObject *chunks[CHUNKS];
    uint32_t first, count;
} Group;

typedef struct {
    Job *jobs;
    Group *groups;
    size_t count, room, grouped, group_room;
} Pass;

typedef struct {
    PyObject_HEAD
    PyObject *labels, *names, *fallback, *active_at;
    Out outs[BUFFERS];
    Pass before, now;
    uint32_t *index; /* positions of the jobs of the previous reading, plus 1, by their hash; made when needed */
    size_t slots, cursor;
    int64_t since;
    int same; /* whether all jobs of the open group are unchanged and from the beginning of one group */
    size_t reused;
} Table;

/* Four independent products for each 32 bytes, because a processor can begin a product in each cycle, but needs several
 * cycles for its result. */
static uint64_t
hash_of(const char *at, size_t size)
{
    uint64_t a = 0x9e3779b97f4a7c15ull ^ size, b = 0xbf58476d1ce4e5b9ull, c = 0x2545f4914f6cdd1dull, d = 0xd6e8feb86659fd93ull;
    uint64_t part[4];
    char tail[sizeof part] = {0};
    for (int last = 0;; at += sizeof part, size -= sizeof part) {
        if (size < sizeof part) {
            memcpy(tail, at, size);
            at = tail;
            last = 1;
        }
        memcpy(part, at, sizeof part);
        a = (a ^ part[0]) * 0x9e3779b97f4a7c15ull;
        b = (b ^ part[1]) * 0x94d049bb133111ebull;
        c = (c ^ part[2]) * 0xc2b2ae3d27d4eb4full;
        d = (d ^ part[3]) * 0xff51afd7ed558ccdull;
        a ^= a >> 32;
        b ^= b >> 29;
        c ^= c >> 31;
        d ^= d >> 30;
        if (last)
            break;
    }
    a = (a ^ (b << 23 | b >> 41)) * 0xbf58476d1ce4e5b9ull;
    a ^= a >> 31;
    a = (a ^ (c << 41 | c >> 23)) * 0x9e3779b97f4a7c15ull;
    a ^= a >> 32;
    a = (a ^ (d << 11 | d >> 53)) * 0x94d049bb133111ebull;
    a ^= a >> 31;
    return a ? a : 1;
}

static void
clear_pass(Pass *pass)
{
    for (size_t i = 0; i < pass->grouped; i++)
        for (int c = 0; c < CHUNKS; c++)
            Py_CLEAR(pass->groups[i].chunks[c]);
    pass->count = pass->grouped = 0;
}

static void *
grown_to(void *data, size_t *room, size_t wanted, size_t size)
{
    size_t most = *room ? *room : 64;
    while (most < wanted)
        most += most / 2;
    if (most == *room)
        return data;
    void *larger = PyMem_Realloc(data, most * size);
    if (larger != NULL)
        *room = most;
    return larger;
}

/* The job of the previous reading with this hash, or NULL. Jobs mostly come in the same order. */
static const Job *
find_job(Table *table, uint64_t id)
{
    const Pass *before = &table->before;
    if (table->cursor < before->count && before->jobs[table->cursor].id == id)
        return &before->jobs[table->cursor++];
    if (before->count == 0)
        return NULL;
    if (table->slots == 0) {
        size_t slots = 64;
        while (slots < 2 * before->count)
            slots *= 2;
        uint32_t *index = PyMem_Calloc(slots, sizeof *index);
        if (index == NULL)
            return NULL; /* then the job counts as new */
        for (size_t i = 0; i < before->count; i++) {
            size_t slot = before->jobs[i].id & (slots - 1);
            while (index[slot])
                slot = (slot + 1) & (slots - 1);
            index[slot] = i + 1;
        }
        table->index = index;
        table->slots = slots;
    }
    for (size_t slot = id & (table->slots - 1); table->index[slot]; slot = (slot + 1) & (table->slots - 1)) {
        size_t position = table->index[slot] - 1;
        if (before->jobs[position].id == id) {
            table->cursor = position + 1;
            return &before->jobs[position];
        }
    }
    return NULL;
}

static void
drop_index(Table *table)
{
    PyMem_Free(table->index);
    table->index = NULL;
    table->slots = table->cursor = 0;
}

/* The first job of the open group. */
static size_t
open_group(const Pass *pass)
{
    const Group *last = pass->grouped ? &pass->groups[pass->grouped - 1] : NULL;
    return last == NULL ? 0 : last->first + last->count;
}

/* Appends the lines of a job, which lie in a group, to the buffers, and moves the job there. */
static int
copy_lines(Table *table, const Group *group, Job *job)
{
    for (int c = 0; c < CHUNKS; c++) {
        Out *out = &table->outs[c];
        size_t begin = out->used;
        if (job->size[c] && !put(out, PyBytes_AS_STRING(group->chunks[c]) + job->begin[c], job->size[c]))
            return 0;
        job->begin[c] = begin;
    }
    return 1;
}

/* Copies the lines of the unchanged jobs of the open group, because another job follows them now. */
static int
break_group(Table *table)
{
    Pass *now = &table->now;
    table->same = 0;
    for (size_t i = open_group(now); i < now->count; i++)
        if (!copy_lines(table, &table->before.groups[now->jobs[i].group], &now->jobs[i]))
            return 0;
    return 1;
}

/* Ends the open group. Its lines are those of a group of the previous reading, or lie in the buffers. */
static int
close_group(Table *table)
{
    Pass *now = &table->now;
    size_t first = open_group(now), count = now->count - first;
    if (count == 0)
        return 1;
    const Group *old = table->same ? &table->before.groups[now->jobs[first].group] : NULL;
    if (old != NULL && old->count != count) {
        if (!break_group(table))
            return 0;
        old = NULL;
    }
    Group *groups = grown_to(now->groups, &now->group_room, now->grouped + 1, sizeof *groups);
    if (groups == NULL)
        return 0;
    now->groups = groups;
    Group *made = &groups[now->grouped];
    *made = (Group){.first = first, .count = count};
    for (int c = 0; c < CHUNKS; c++) {
        Out *out = &table->outs[c];
        made->chunks[c] = old != NULL ? Py_NewRef(old->chunks[c]) : PyBytes_FromStringAndSize(out->data, out->used);
        if (made->chunks[c] == NULL) {
            while (c-- > 0)
                Py_CLEAR(made->chunks[c]);
            return 0;
        }
        out->used = 0;
    }
    for (size_t i = first; i < now->count; i++)
        now->jobs[i].group = now->grouped;
    now->grouped++;
    table->reused += old != NULL;
    table->same = 1;
    return 1;
}

/* Renders a block of unusual form with Python. Returns 0 with an exception set. */
static int
render_with_python(Table *table, const char *at, size_t size, Job *job)
{
    PyObject *found = PyObject_CallFunction(table->fallback, "y#", at, (Py_ssize_t)size);
    PyObject *name, *chunks;
    unsigned int skipped;
    int done = 0;
    if (found == NULL)
        return 0;
    if (PyArg_ParseTuple(found, "SO!I", &name, &PyTuple_Type, &chunks, &skipped) && PyTuple_GET_SIZE(chunks) == CHUNKS) {
        job->name = hash_of(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name));
        job->skipped = skipped;
        done = 1;
        for (int c = 0; done && c < CHUNKS; c++) {
            PyObject *chunk = PyTuple_GET_ITEM(chunks, c);
            done = PyBytes_Check(chunk);
            if (done && PyBytes_GET_SIZE(chunk) &&
                !put(&table->outs[c], PyBytes_AS_STRING(chunk), PyBytes_GET_SIZE(chunk))) {
                PyErr_NoMemory();
                done = 0;
            }
        }
    }
    if (!done && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "fallback: (name, five chunks, skipped lines)");
    Py_DECREF(found);
    return done;
}

/* Renders a job into the buffers. Returns 0 with an exception set. */
static int
render_job(Table *table, const char *at, size_t size, Job *job)
{
    Word families[CHUNKS], id = {"", 0}, node = {PyBytes_AS_STRING(table->labels), PyBytes_GET_SIZE(table->labels)};
    Text text = {at, at + size};
    size_t used[CHUNKS];
    int done = 0;
    for (int c = 0; c < CHUNKS; c++) {
        PyObject *name = PyTuple_GET_ITEM(table->names, c);
        families[c] = (Word){PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)};
        used[c] = table->outs[c].used;
    }
    if (size <= LONGEST_BLOCK)
        done = render(&text, node, families, table->outs, &id);
    if (done < 0) {
        PyErr_NoMemory();
        return 0;
    }
    if (done && id.size >= sizeof OWN_NAME - 1 && memcmp(id.at, OWN_NAME, sizeof OWN_NAME - 1) == 0)
        done = 0;
    if (done) {
        job->name = hash_of(id.at, id.size);
        job->skipped = 0;
    } else {
        for (int c = 0; c < CHUNKS; c++)
            table->outs[c].used = used[c];
        if (!render_with_python(table, at, size, job))
            return 0;
    }
    for (int c = 0; c < CHUNKS; c++) {
        job->begin[c] = used[c];
        job->size[c] = table->outs[c].used - used[c];
    }
    job->shown = 1;
    return 1;
}

/* Reads the time of the last activity in the second line of a job. Returns 0 with an exception set. */
static int
read_time(Table *table, const char *at, size_t size, int64_t *active_at)
{
    const char *digit = at + sizeof TIME - 1;
    if (size > sizeof TIME + 10 && memcmp(at, TIME, sizeof TIME - 1) == 0 && digit[10] == '.') {
        int64_t value = 0;
        int i = 0;
        for (; i < 10 && Py_ISDIGIT(digit[i]); i++)
            value = 10 * value + digit[i] - '0';
        if (i == 10) {
            *active_at = value;
            return 1;
        }
    }
    PyObject *found = PyObject_CallFunction(table->active_at, "y#", at, (Py_ssize_t)size);
    if (found == NULL)
        return 0;
    *active_at = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return !(*active_at == -1 && PyErr_Occurred());
}

/* Adds the job whose text lies here. Returns 0 with an exception set. */
static int
add_job(Table *table, const char *at, const char *first_end, const char *end)
{
    Pass *now = &table->now;
    const char *second = first_end + 1;
    const char *second_end = second < end ? memchr(second, '\n', end - second) : NULL;
    size_t of_times = second_end == NULL ? 0 : second_end + 1 - second;
    Job *jobs = grown_to(now->jobs, &now->room, now->count + 1, sizeof *jobs);
    if (jobs == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    now->jobs = jobs;
    Job *job = &jobs[now->count];
    uint64_t id = hash_of(at, first_end - at), times = hash_of(second, of_times);
    const Job *old = find_job(table, id);
    int unchanged = 0;
    if (old != NULL && old->times == times) {
        uint64_t mark = hash_of(at, end - at);
        unchanged = old->mark == mark;
        *job = *old;
        job->mark = mark;
    } else {
        *job = (Job){.id = id, .times = times, .mark = old == NULL || !of_times ? hash_of(at, end - at) : 0};
        if (!read_time(table, second, of_times, &job->active_at))
            return 0;
    }
    if (unchanged && table->same) {
        size_t place = now->count - open_group(now);
        const Group *group = &table->before.groups[place ? now->jobs[now->count - place].group : old->group];
        if (group->first + place == (size_t)(old - table->before.jobs) && place < group->count) {
            now->count++;
            goto added;
        }
    }
    if (table->same && !break_group(table)) {
        PyErr_NoMemory();
        return 0;
    }
    if (unchanged) {
        if (!copy_lines(table, &table->before.groups[old->group], job)) {
            PyErr_NoMemory();
            return 0;
        }
    } else {
        memset(job->size, 0, sizeof job->size);
        job->shown = job->skipped = 0;
        if ((job->active_at >= table->since || job->active_at == UNKNOWN_TIME) && !render_job(table, at, end - at, job))
            return 0;
    }
    now->count++;
added:
    if (now->count - open_group(now) >= MOST_OF_GROUP ||
        (ENDS_GROUP(id) && now->count - open_group(now) >= LEAST_OF_GROUP)) {
        if (!close_group(table)) {
            if (!PyErr_Occurred())
                PyErr_NoMemory();
            return 0;
        }
    }
    return 1;
}

/* The first of the next job, or NULL. It begins with a dash, which is rare elsewhere, so a search for dashes is faster
 * than a search for the ends of lines. begin is behind the first byte of the text. */
static const char *
next_job(const char *begin, const char *end)
{
    for (const char *at = begin; (at = memchr(at, KEY[0], end - at)) != NULL; at++) {
        if ((size_t)(end - at) < sizeof KEY - 1)
            return NULL;
        if (at[-1] == '\n' && memcmp(at, KEY, sizeof KEY - 1) == 0)
            return at;
    }
    return NULL;
}

static PyObject *
table_begin(PyObject *self, PyObject *since)
{
    Table *table = (Table *)self;
    long long value = PyLong_AsLongLong(since);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    clear_pass(&table->now);
    for (int c = 0; c < CHUNKS; c++)
        table->outs[c].used = 0;
    table->since = value;
    table->cursor = table->reused = 0;
    table->same = 1;
    Py_RETURN_NONE;
}

static PyObject *
table_read(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Table *table = (Table *)self;
    if (count != 4 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "read(text: bytes, begin: int, end: int, last: bool)");
        return NULL;
    }
    Py_ssize_t begin = PyLong_AsSsize_t(args[1]), stop = PyLong_AsSsize_t(args[2]);
    int last = PyObject_IsTrue(args[3]);
    if (last < 0 || PyErr_Occurred())
        return NULL;
    if (begin < 0 || stop < begin || stop > PyBytes_GET_SIZE(args[0])) {
        PyErr_SetString(PyExc_ValueError, "read: begin and end must lie in the text");
        return NULL;
    }
    const char *text = PyBytes_AS_STRING(args[0]), *at = text + begin, *end = text + stop;
    while (at < end) {
        const char *first_end = memchr(at, '\n', end - at);
        if (first_end == NULL)
            break;
        const char *following = next_job(first_end + 1, end);
        if (following == NULL && !last)
            break;
        if (following == NULL)
            following = end;
        if (!add_job(table, at, first_end, following))
            return NULL;
        at = following;
    }
    return PyLong_FromSsize_t(at - text);
}

static PyObject *
table_newest(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    const Pass *now = &((Table *)self)->now;
    int64_t newest = now->count ? now->jobs[0].active_at : 0;
    for (size_t i = 1; i < now->count; i++)
        if (now->jobs[i].active_at > newest)
            newest = now->jobs[i].active_at;
    return PyLong_FromLongLong(newest);
}

static int
is_active(const Job *job, int64_t since)
{
    return job->active_at >= since || job->active_at == UNKNOWN_TIME;
}

/* Makes a group again without the jobs that are idle now. Returns 0 without memory. */
static int
hide_idle(Table *table, Group *group, int64_t since)
{
    Group old = *group;
    for (uint32_t i = old.first; i < old.first + old.count; i++) {
        Job *job = &table->now.jobs[i];
        if (!is_active(job, since)) {
            memset(job->size, 0, sizeof job->size);
            job->shown = job->skipped = 0;
            job->mark = 0; /* it has no lines: if it counts as active again, it must be rendered */
        }
        if (!copy_lines(table, &old, job))
            return 0;
    }
    for (int c = 0; c < CHUNKS; c++) {
        PyObject *chunk = PyBytes_FromStringAndSize(table->outs[c].data, table->outs[c].used);
        if (chunk == NULL)
            return 0;
        group->chunks[c] = chunk;
        table->outs[c].used = 0;
        Py_DECREF(old.chunks[c]);
    }
    return 1;
}

/* Whether the shown jobs have different names. Returns -1 without memory. */
static int
are_unique(const Pass *now)
{
    size_t slots = 64;
    while (slots < 2 * now->count)
        slots *= 2;
    uint64_t *names = PyMem_Calloc(slots, sizeof *names);
    if (names == NULL)
        return -1;
    int unique = 1;
    for (size_t i = 0; unique && i < now->count; i++) {
        if (!now->jobs[i].shown)
            continue;
        size_t slot = now->jobs[i].name & (slots - 1);
        for (; names[slot] && unique; slot = (slot + 1) & (slots - 1))
            unique = names[slot] != now->jobs[i].name;
        names[slot] = now->jobs[i].name;
    }
    PyMem_Free(names);
    return unique;
}

static PyObject *
result_of(Table *table, size_t shown, unsigned long long skipped)
{
    const Pass *now = &table->now;
    PyObject *columns = PyTuple_New(CHUNKS);
    for (int c = 0; columns != NULL && c < CHUNKS; c++) {
        PyObject *column = PyList_New(0);
        for (size_t i = 0; column != NULL && i < now->grouped; i++)
            if (PyBytes_GET_SIZE(now->groups[i].chunks[c]) && PyList_Append(column, now->groups[i].chunks[c]) < 0)
                Py_CLEAR(column);
        if (column == NULL)
            Py_CLEAR(columns);
        else
            PyTuple_SET_ITEM(columns, c, column);
    }
    return columns == NULL ? NULL : Py_BuildValue(
        "nnKnnN", (Py_ssize_t)now->count, (Py_ssize_t)shown, skipped, (Py_ssize_t)now->grouped, (Py_ssize_t)table->reused, columns);
}

static PyObject *
table_end(PyObject *self, PyObject *from)
{
    Table *table = (Table *)self;
    Pass *now = &table->now;
    int64_t since = PyLong_AsLongLong(from);
    size_t shown = 0;
    unsigned long long skipped = 0;
    if (since == -1 && PyErr_Occurred())
        return NULL;
    if (!close_group(table))
        return PyErr_NoMemory();
    for (size_t g = 0; g < now->grouped; g++) {
        int idle = 0;
        for (uint32_t i = now->groups[g].first; i < now->groups[g].first + now->groups[g].count; i++) {
            const Job *job = &now->jobs[i];
            if (!job->shown && is_active(job, since))
                Py_RETURN_NONE;
            idle |= job->shown && !is_active(job, since);
        }
        if (idle && !hide_idle(table, &now->groups[g], since))
            return PyErr_NoMemory();
    }
    for (size_t i = 0; i < now->count; i++) {
        shown += now->jobs[i].shown;
        skipped += now->jobs[i].shown ? now->jobs[i].skipped : 0;
    }
    int unique = are_unique(now);
    if (unique < 0)
        return PyErr_NoMemory();
    if (!unique)
        Py_RETURN_NONE;
    PyObject *result = result_of(table, shown, skipped);
    if (result == NULL)
        return NULL;
    Pass done = table->before;
    table->before = *now;
    *now = done;
    clear_pass(now);
    drop_index(table);
    for (int c = 0; c < BUFFERS; c++) /* a table that changed little must not keep the buffers of its first reading */
        if (table->outs[c].room > 1 << 20) {
            PyMem_Free(table->outs[c].data);
            table->outs[c] = (Out){NULL, 0, 0};
        }
    return result;
}

static PyObject *
table_forget(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Table *table = (Table *)self;
    clear_pass(&table->before);
    clear_pass(&table->now);
    drop_index(table);
    Py_RETURN_NONE;
}

static int
table_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    Table *table = (Table *)self;
    PyObject *labels, *names, *fallback, *active_at;
    if (!PyArg_ParseTuple(args, "SO!OO", &labels, &PyTuple_Type, &names, &fallback, &active_at))
        return -1;
    for (Py_ssize_t i = 0; i < CHUNKS; i++)
        if (PyTuple_GET_SIZE(names) != CHUNKS || !PyBytes_Check(PyTuple_GET_ITEM(names, i))) {
            PyErr_SetString(PyExc_TypeError, "names: bytes objects, one a family");
            return -1;
        }
    Py_XSETREF(table->labels, Py_NewRef(labels));
    Py_XSETREF(table->names, Py_NewRef(names));
    Py_XSETREF(table->fallback, Py_NewRef(fallback));
    Py_XSETREF(table->active_at, Py_NewRef(active_at));
    table->same = 1;
    return 0;
}

static void
table_dealloc(PyObject *self)
{
    Table *table = (Table *)self;
    PyTypeObject *type = Py_TYPE(self);
    clear_pass(&table->before);
    clear_pass(&table->now);
    drop_index(table);
    for (int i = 0; i < 2; i++) {
        Pass *pass = i ? &table->before : &table->now;
        PyMem_Free(pass->jobs);
        PyMem_Free(pass->groups);
    }
    for (int c = 0; c < BUFFERS; c++)
        PyMem_Free(table->outs[c].data);
    Py_XDECREF(table->labels);
    Py_XDECREF(table->names);
    Py_XDECREF(table->fallback);
    Py_XDECREF(table->active_at);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef table_methods[] = {
    {"begin", table_begin, METH_O, "Start a new reading; jobs that were not active since then get no lines."},
    {"read", (PyCFunction)(void (*)(void))table_read, METH_FASTCALL, "Read the whole jobs of a text; the position of the rest."},
    {"newest", table_newest, METH_NOARGS, "The time of the last activity of any job; 0 without jobs."},
    {"end", table_end, METH_O, "Numbers of jobs, and the finished lines by family; None if the file must be read again."},
    {"forget", table_forget, METH_NOARGS, "Treat all jobs as new at the next reading."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot table_slots[] = {
    {Py_tp_doc, "The jobs of a target between scrapes."},
    {Py_tp_init, table_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods},
    {0, NULL},
};
static PyType_Spec table_spec = {
    .name = "exporter.jobs._lines.Table", .basicsize = sizeof(Table), .flags = Py_TPFLAGS_DEFAULT, .slots = table_slots,
};

/* Returns free memory to the system. Freed lines lie between lines in use, where the C library keeps them otherwise. */
static PyObject *
trim(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
#ifdef __GLIBC__
    Py_BEGIN_ALLOW_THREADS
    malloc_trim(0);
    Py_END_ALLOW_THREADS
#endif
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"trim", trim, METH_NOARGS, "Return free memory to the system."},
    {"lines", lines, METH_VARARGS, "The job id as a label value and the finished lines of a job; None for an unusual block."},
    {"numbers", numbers, METH_O, "Start time, shape, number of operations and values of a job; None for an unusual block."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "exporter.jobs._lines", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__lines(void)
{
    PyObject *made = PyModule_Create(&module), *type = made == NULL ? NULL : PyType_FromSpec(&table_spec);
    if (type == NULL || PyModule_AddObjectRef(made, "Table", type) < 0)
        Py_CLEAR(made);
    Py_XDECREF(type);
    return made;
}
