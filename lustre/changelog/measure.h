/* The binary form of changelog records, for the modules that read them. lustre.changelog.decode describes it. */
#ifndef LUSTRE_CHANGELOG_MEASURE_H
#define LUSTRE_CHANGELOG_MEASURE_H
#include <stddef.h>
#include <stdint.h>

enum { HEADER = 64, FID = 16, JOB_ID_SIZE = 32, NID_SIZE = 24, XATTR_SIZE = 256, NAME_MOST = 512 };
enum { RENAME = 2, JOB_ID = 4, EXTRA = 8 };                                        /* above the flags of the type */
enum { OWNER = 1, NID = 2, OPEN = 4, XATTR = 8, NID_LARGE = 16, EXTRA_KNOWN = 31 }; /* extra flags */
#define FLAG_BITS 12
#define SECOND_SHIFT 30

typedef struct {
    ptrdiff_t size; /* of the whole record */
    uint64_t type, extra;
    unsigned extensions;
    size_t name_size;
    const char *name;
} Measured;

static inline uint64_t
number(const char *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return value;
}

/* Returns the time of a record, as seconds of the epoch. */
static inline double
record_time(const char *at)
{
    uint64_t time = number(at + 24, 8), nanosecond = time & ((1u << SECOND_SHIFT) - 1);
    return (double)(time >> SECOND_SHIFT) + (double)nanosecond / 1e9;
}

/* Returns the length of the extensions in bytes; -1 if their flags are truncated or unknown. */
static inline ptrdiff_t
extensions_size(const char *at, ptrdiff_t room, unsigned extensions, uint64_t *extra)
{
    ptrdiff_t size = (extensions & RENAME ? 2 * FID : 0) + (extensions & JOB_ID ? JOB_ID_SIZE : 0);
    *extra = 0;
    if (!(extensions & EXTRA))
        return size;
    if (room < HEADER + size + 8)
        return -1;
    *extra = number(at + HEADER + size, 8);
    if (*extra > EXTRA_KNOWN)
        return -1;
    return size + 8 + (*extra & OWNER ? 16 : 0) + (*extra & NID ? NID_SIZE : 0) + (*extra & OPEN ? 4 : 0)
           + (*extra & XATTR ? XATTR_SIZE : 0);
}

/* Measures the record at this place. Returns 0 if it is incomplete, or is not a record. */
static inline int
measured(const char *at, ptrdiff_t room, Measured *to)
{
    if (room < HEADER)
        return 0;
    to->name_size = (size_t)number(at, 2);
    to->extensions = (unsigned)number(at + 2, 2) >> FLAG_BITS;
    to->type = number(at + 4, 4);
    ptrdiff_t more = extensions_size(at, room, to->extensions, &to->extra);
    if (more < 0 || to->name_size > NAME_MOST || room < HEADER + more + (ptrdiff_t)to->name_size)
        return 0;
    to->name = at + HEADER + more;
    to->size = HEADER + more + (ptrdiff_t)to->name_size;
    return 1;
}
#endif
