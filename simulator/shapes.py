"""Which counters each stats file of Lustre 2.17 has, in the order the kernel prints them."""

from __future__ import annotations

from simulator.tally import COUNT, MINMAX, STDDEV, Shape


def _usecs(names: str) -> Shape:
    return tuple((name, "usecs", STDDEV) for name in names.split())


def _reqs(names: str, detail: int = COUNT) -> Shape:
    return tuple((name, "reqs", detail) for name in names.split())


def _bytes(names: str) -> Shape:
    return tuple((name, "bytes", STDDEV) for name in names.split())


def _pages(names: str, detail: int = COUNT) -> Shape:
    return tuple((name, "pages", detail) for name in names.split())


LLITE: Shape = (
    *_bytes("read_bytes write_bytes cached_read_bytes hybrid_read_bytes hybrid_write_bytes"),
    *_usecs("read write"),
    *_reqs("ioctl"),
    *_usecs("open close mmap page_fault page_mkwrite seek fsync readdir setattr truncate flock getattr"),
    *_usecs("create link unlink symlink mkdir rmdir mknod rename statfs setxattr getxattr"),
    *_reqs("getxattr_hits"),
    *_usecs("listxattr removexattr inode_permission fallocate"),
    *_reqs("opencount", STDDEV),
    *_usecs("openclosetime"),
    *_reqs("hybrid_noswitch hybrid_writesize_switch hybrid_readsize_switch"),
)

READ_AHEAD: Shape = (
    *_pages("hits misses readpage_not_consecutive miss_inside_window failed_grab_page failed_lock_match"),
    *_pages("read_but_discarded zero_length_file zero_size_window readahead_to_eof hit_max_readahead_issue"),
    *_pages("wrong_page_from_grab_cache_page failed_to_reach_end async_readahead failed_to_fast_read mmap_range_read"),
    *_pages("readahead_pages forceread_pages", MINMAX),
)

_REQUEST: Shape = (*_usecs("req_waittime"), *_reqs("req_active", STDDEV))

OSC: Shape = (
    *_REQUEST,
    *_reqs("ldlm_glimpse_enqueue ldlm_extent_enqueue", STDDEV),
    *_bytes("read_bytes write_bytes"),
    *_usecs("ost_setattr ost_read ost_write ost_create ost_destroy ost_connect ost_statfs ost_sync ldlm_cancel"),
    *_usecs("obd_ping"),
)

MDC: Shape = (
    *_REQUEST,
    *_reqs("ldlm_ibits_enqueue", STDDEV),
    *_usecs("mds_getattr mds_getattr_lock mds_close mds_connect mds_get_root mds_statfs mds_sync mds_getxattr"),
    *_usecs("ldlm_cancel obd_ping seq_query fld_query"),
)

MDC_MD: Shape = _reqs(
    "close create enqueue getattr intent_lock link rename setattr fsync read_page unlink setxattr getxattr "
    "intent_getattr_async revalidate_lock"
)

OST: Shape = (
    *_bytes("read_bytes write_bytes"),
    *_usecs("read write getattr setattr punch sync destroy create statfs get_info set_info quotactl prealloc"),
)

MDT: Shape = (
    *_usecs("open close mknod link unlink mkdir rmdir rename getattr setattr getxattr setxattr statfs sync"),
    *_usecs("samedir_rename parallel_rename_file parallel_rename_dir crossdir_rename rename_trylocks read write"),
    *_bytes("read_bytes write_bytes"),
    *_usecs("punch migrate fallocate readpage"),
)

_SERVICE: Shape = (
    *_usecs("req_waittime"),
    *_reqs("req_qdepth req_active", STDDEV),
    ("req_timeout", "secs", STDDEV),
    ("reqbuf_avail", "bufs", STDDEV),
)

OST_IO: Shape = (*_SERVICE, *_usecs("ost_read ost_write ost_punch"))
