"""Prototypes of liblustreapi: the functions used here, their arguments, and the release that introduced each.

Most functions return a negative errno. Functions ``llapi_layout_*`` return -1 or NULL and set ``errno``.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_longlong, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any


class FidStruct(ctypes.Structure):
    """struct lu_fid"""

    _fields_ = (("sequence", c_uint64), ("object_id", c_uint32), ("version", c_uint32))


class HsmStateStruct(ctypes.Structure):
    """struct hsm_user_state, without the text that may follow"""

    _fields_ = (
        ("states", c_uint32), ("archive_id", c_uint32), ("in_progress_state", c_uint32),
        ("in_progress_action", c_uint32), ("offset", c_uint64), ("length", c_uint64),
    )  # fmt: skip


class QuotaStruct(ctypes.Structure):
    """struct if_quotactl with room for a pool name"""

    _fields_ = (
        ("command", c_uint32), ("type", c_uint32), ("id", c_uint32), ("stat", c_uint32), ("valid", c_uint32),
        ("index", c_uint32), ("block_grace", c_uint64), ("inode_grace", c_uint64), ("info_flags", c_uint32),
        ("info_valid", c_uint32), ("hard_limit_kib", c_uint64), ("soft_limit_kib", c_uint64),
        ("used_bytes", c_uint64), ("inode_hard_limit", c_uint64), ("inode_soft_limit", c_uint64),
        ("inodes", c_uint64), ("block_time", c_uint64), ("inode_time", c_uint64), ("block_valid", c_uint32),
        ("padding", c_uint32), ("obd_type", ctypes.c_char * 16), ("obd_uuid", ctypes.c_char * 40),
        ("pool", ctypes.c_char * 17),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Symbol:
    """One function of the library."""

    name: str
    result: Any
    arguments: tuple[Any, ...]
    since: str = "2.12"


_FID = POINTER(FidStruct)

SYMBOLS = tuple(
    Symbol(*fields)
    for fields in (
        ("llapi_msg_set_level", None, (c_int,)),
        ("llapi_fd2fid", c_int, (c_int, _FID)),
        ("llapi_path2fid", c_int, (c_char_p, _FID)),
        ("llapi_fid2path", c_int, (c_char_p, c_char_p, c_char_p, c_int, POINTER(c_longlong), POINTER(c_int))),
        ("llapi_fid2path_at", c_int, (c_int, _FID, c_char_p, c_int, POINTER(c_longlong), POINTER(c_int)), "2.15"),
        ("llapi_open_by_fid", c_int, (c_char_p, _FID, c_int)),
        ("llapi_open_by_fid_at", c_int, (c_int, _FID, c_int), "2.16"),
        ("llapi_file_fget_mdtidx", c_int, (c_int, POINTER(c_int))),
        ("llapi_get_mdt_index_by_fid", c_int, (c_int, _FID, POINTER(c_int))),
        ("llapi_lease_acquire", c_int, (c_int, c_int)),
        ("llapi_lease_check", c_int, (c_int,)),
        ("llapi_get_data_version", c_int, (c_int, POINTER(c_uint64), c_uint64)),
        ("llapi_fswap_layouts", c_int, (c_int, c_int, c_uint64, c_uint64, c_uint64)),
        ("llapi_hsm_state_get_fd", c_int, (c_int, POINTER(HsmStateStruct))),
        ("llapi_changelog_clear", c_int, (c_char_p, c_char_p, c_longlong)),
        ("llapi_quotactl", c_int, (c_char_p, POINTER(QuotaStruct))),
        ("llapi_layout_alloc", c_void_p, ()),
        ("llapi_layout_free", None, (c_void_p,)),
        ("llapi_layout_comp_add", c_int, (c_void_p,)),
        ("llapi_layout_add_first_comp", c_int, (c_void_p,)),
        ("llapi_layout_comp_extent_set", c_int, (c_void_p, c_uint64, c_uint64)),
        ("llapi_layout_comp_flags_set", c_int, (c_void_p, c_uint32)),
        ("llapi_layout_mirror_count_set", c_int, (c_void_p, ctypes.c_uint16)),
        ("llapi_layout_pattern_set", c_int, (c_void_p, c_uint64)),
        ("llapi_layout_stripe_count_set", c_int, (c_void_p, c_uint64)),
        ("llapi_layout_stripe_size_set", c_int, (c_void_p, c_uint64)),
        ("llapi_layout_extension_size_set", c_int, (c_void_p, c_uint64), "2.13"),
        ("llapi_layout_ost_index_set", c_int, (c_void_p, c_int, c_uint64)),
        ("llapi_layout_pool_name_set", c_int, (c_void_p, c_char_p)),
        ("llapi_layout_file_open", c_int, (c_char_p, c_int, ctypes.c_uint, c_void_p)),
    )
)
