/* Marks: hashes of texts, by which an unchanged text is recognized. Part of the modules lustre._files and lustre.formats._texts.
 *
 * A mark is 0 for no text only. Two texts with the same mark are taken as equal. */
#define _GNU_SOURCE /* memmem */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

static uint64_t
rotated(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

static uint64_t
mixed(uint64_t lane, const char *at)
{
    uint64_t part;
    memcpy(&part, at, sizeof part);
    return rotated(lane ^ part, 29) * 0x9e3779b97f4a7c15ull; /* an odd factor, so no bits are lost */
}

HIDDEN uint64_t
mark_of(const char *at, size_t size)
{
    uint64_t a = 1, b = 2, c = 3, d = size; /* independent, so the multiplications overlap */
    char tail[32] = {0};
    for (; size >= sizeof tail; at += sizeof tail, size -= sizeof tail) {
        a = mixed(a, at);
        b = mixed(b, at + 8);
        c = mixed(c, at + 16);
        d = mixed(d, at + 24);
    }
    memcpy(tail, at, size);
    a = mixed(a, tail);
    b = mixed(b, tail + 8);
    c = mixed(c, tail + 16);
    d = mixed(d, tail + 24);
    uint64_t all = (rotated(a, 7) ^ b) * 0xbf58476d1ce4e5b9ull + (rotated(c, 11) ^ d) * 0x94d049bb133111ebull;
    all ^= all >> 29;
    return all ? all : 1;
}

static const char *
after_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* Whether a line of the header begins here, as lustre.formats.header understands it: a key, blanks, and for two of the keys
 * a time. */
static int
is_time(const char *at, const char *end)
{
    static const char *const keys[] = {"snapshot_time", "start_time", "elapsed_time"};
    at = after_blanks(at, end);
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(keys[i]);
        if ((size_t)(end - at) <= size || memcmp(at, keys[i], size) != 0)
            continue;
        const char *colon = after_blanks(at += size, end);
        if (colon < end && *colon == ':')
            at = colon + 1;
        const char *time = after_blanks(at, end);
        return time > at && (i == 2 || (time < end && ((*time >= '0' && *time <= '9') || *time == '.')));
    }
    return 0;
}

/* The mark of a text without the lines of the header, which change at every reading. */
HIDDEN uint64_t
mark_after_header(const char *at, size_t size)
{
    const char *end = at + size;
    while (is_time(at, end)) {
        const char *line_end = memchr(at, '\n', end - at);
        if (line_end == NULL)
            break;
        at = line_end + 1;
    }
    return mark_of(at, end - at);
}

/* Finds the rest of the line after a key, and moves the text's begin to the end of this line, because the next key may begin
 * there. Returns its size, or -1 if the key or the end of its line is missing. */
HIDDEN ptrdiff_t
rest_of_line(const char **text, const char *end, const char *key, size_t key_size, const char **rest)
{
    const char *begin = memmem(*text, end - *text, key, key_size);
    if (begin == NULL)
        return -1;
    begin += key_size;
    const char *line_end = memchr(begin, '\n', end - begin);
    if (line_end == NULL)
        return -1;
    *rest = begin;
    *text = line_end;
    return line_end - begin;
}
