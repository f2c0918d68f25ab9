"""The structs of include/sluice/, field by field; a test compares them with a C compiler's."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_uint32, c_uint64, c_void_p
from operator import index
from typing import Any

from ._errors import UsageError

MAX_ORDER = 16
MAX_DEVICES = 16
U32, U64, F64, ENUM = c_uint32, c_uint64, c_double, c_int
LIMITS = {U32: (0, 2**32 - 1), U64: (0, 2**64 - 1), c_int32: (-2**31, 2**31 - 1)}


def whole(kind: Any, name: str, value: Any) -> Any:
    """An integer of the library's type; ctypes would keep the low bits of one that is out of range."""
    low, high = LIMITS[kind]
    if not low <= index(value) <= high:
        raise UsageError(f"{name} {value} is not from {low} to {high}")
    return kind(index(value))


class Structure(ctypes.Structure):
    """One whose integers have to be in range, and whose texts have to be whole."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind: Any = {field[0]: field[1] for field in type(self)._fields_}.get(name)
        if kind in LIMITS:
            value = whole(kind, name, value).value
        elif kind is c_char_p and value is not None and b"\0" in value:
            raise UsageError(f"{name} {value!r} has a zero character")
        super().__setattr__(name, value)


class Error(Structure):
    _fields_ = [("status", ENUM), ("system_errno", c_int), ("line", U64), ("column", U64), ("block", U64),
                ("offset", U64), ("field", ENUM), ("other_field", ENUM), ("file", c_char * 512), ("message", c_char * 1024)]


# Returns an address: ctypes would keep no string alive behind the call.
NAME = CFUNCTYPE(c_void_p, c_void_p, U32, U64)
PROGRESS = CFUNCTYPE(None, c_void_p, c_char_p, U64, U64)


STOP = POINTER(c_int)


def fibers(reserved):
    return [("fibers", ENUM), ("fiber_mode", U32), ("fiber_bits", U32), (reserved, U32)]


class ConvertOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("index_base", c_int32), ("dims_order", U32),
                ("dims", U64 * MAX_ORDER), ("duplicates", ENUM), ("codec", ENUM), ("value", ENUM), ("threads", U32),
                ("block_bytes", U64), ("memory_bytes", U64), ("temp_folder", c_char_p), ("max_temp_bytes", U64),
                ("overwrite", U32), ("relabel", ENUM), ("restart", U32), ("reserved", U32), ("commit_seconds", F64),
                ("progress", PROGRESS), ("context", c_void_p), ("columns", c_char_p), ("value_column", c_char_p),
                ("delimiter", c_char_p), ("no_header", U32), ("missing", ENUM), ("labels", POINTER(c_char_p)),
                ("label_count", U32), ("named_modes", U32), ("name", NAME), ("titles", c_char_p * MAX_ORDER),
                ("values", c_char_p), ("transform", c_char_p), ("stop", STOP), *fibers("reserved3")]


class ConvertReport(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("order", U32), ("dims", U64 * MAX_ORDER),
                ("index_base", U32), ("reserved", U32), ("entries", U64), ("duplicates", U64),
                ("explicit_zeros", U64), ("nnz", U64), ("text_bytes", U64), ("store_bytes", U64), ("seconds", F64),
                ("relabelled_modes", U32), ("reserved2", U32), ("skipped", U64)]


class AppendOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("index_base", c_int32), ("duplicates", ENUM),
                ("fixed_modes", U32), ("again", U32), ("drop_layouts", U32), ("threads", U32), ("reserved", U32),
                ("block_bytes", U64), ("memory_bytes", U64), ("temp_folder", c_char_p), ("max_temp_bytes", U64),
                ("progress", PROGRESS), ("context", c_void_p), ("stop", STOP), *fibers("reserved2"),
                ("labels", POINTER(c_char_p)), ("label_count", U32), ("table", U32), ("values", c_char_p)]


class AppendReport(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("known", U32), ("dims", U64 * MAX_ORDER), ("entries", U64),
                ("nnz_before", U64), ("nnz", U64), ("layouts_dropped", U32), ("reserved", U32)]


class Range(Structure):
    _fields_ = [("mode", U32), ("reserved", U32), ("first", U64), ("last", U64)]


class ReshapeOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("codec", ENUM), ("relabel", ENUM), ("relabel_given", U32),
                ("keep_indices", U32), ("overwrite", U32), ("threads", U32), ("transform", c_char_p),
                ("block_bytes", U64), ("memory_bytes", U64), ("temp_folder", c_char_p), ("max_temp_bytes", U64),
                ("progress", PROGRESS), ("context", c_void_p), ("stop", STOP), *fibers("reserved")]


class GenerateOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("distribution", ENUM), ("codec", ENUM), ("zipf_exponent", F64), ("rank", U32),
                ("threads", U32), ("noise", F64), ("seed", U64), ("block_bytes", U64), ("memory_bytes", U64),
                ("overwrite", U32), ("relabel", ENUM), ("progress", PROGRESS), ("context", c_void_p), ("stop", STOP),
                ("temp_folder", c_char_p), ("max_temp_bytes", U64), *fibers("reserved"), ("best_ttm", U32),
                ("reserved2", U32)]


class StoreInfo(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("value_type", ENUM), ("dims", U64 * MAX_ORDER), ("nnz", U64),
                ("norm", F64), ("block_count", U64), ("store_bytes", U64), ("content_sum", U64), ("codec", ENUM),
                ("relabelled_modes", U32), ("named_modes", U32), ("fiber_bits", U32), ("fiber_mode", U32),
                ("key_bits", U32), ("tile_count", U64), ("max_block_bytes", U64), ("total_bytes", U64),
                ("entries", U64), ("duplicates", U64), ("explicit_zeros", U64), ("index_base", U32), ("appended", U32),
                ("source", c_char * 512), ("dialect", c_char * 32), ("duplicate_policy", c_char * 16),
                ("transforms", c_char * 128), ("writer", c_char * 64)]


class Appended(Structure):
    _fields_ = [("struct_bytes", U64), ("entries", U64), ("source", c_char * 512)]


class LayoutInfo(Structure):
    _fields_ = [("struct_bytes", U64), ("kind", ENUM), ("mode", U32), ("codec", ENUM), ("reserved", U32),
                ("file_bytes", U64), ("block_count", U64), ("stripes", U32), ("reserved2", U32)]


class LayoutOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("memory_bytes", U64), ("threads", U32), ("reserved", U32),
                ("stop", STOP), ("progress", PROGRESS), ("context", c_void_p)]


ON_FOUND = CFUNCTYPE(None, c_void_p, POINTER(Error))
ON_LEFTOVER = CFUNCTYPE(None, c_void_p, c_char_p)


class CheckOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("fast", U32), ("threads", U32), ("memory_bytes", U64), ("max_findings", U32),
                ("reserved", U32), ("found", ON_FOUND), ("context", c_void_p), ("stop", STOP), ("progress", PROGRESS),
                ("leftover", ON_LEFTOVER)]


class ExportOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("index_base", U32), ("threads", U32), ("memory_bytes", U64),
                ("overwrite", U32), ("form", ENUM), ("stop", STOP), ("progress", PROGRESS), ("context", c_void_p)]


class ModelExportOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("form", ENUM), ("overwrite", U32), ("store", c_char_p), ("memory_bytes", U64),
                ("stop", STOP), ("progress", PROGRESS), ("context", c_void_p)]


class ComputeOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("memory_bytes", U64), ("threads", U32), ("precision", ENUM), ("io", ENUM),
                ("schedule", ENUM), ("deterministic", U32), ("slots", U32), ("no_cache", U32), ("copies", ENUM),
                ("stop", POINTER(c_int)), ("pin", ENUM), ("layouts", ENUM), ("passes", ENUM), ("io_limit", U64),
                ("device", ENUM), ("streams", U32), ("device_memory_bytes", U64), ("split", c_char_p),
                ("device_count", U32), ("devices", U32 * MAX_DEVICES), ("reserved", U32), ("progress", PROGRESS),
                ("context", c_void_p), ("device_name", c_char_p)]


class Plan(Structure):
    _fields_ = [("struct_bytes", U64), ("budget_bytes", U64), ("minimum_bytes", U64), ("total_bytes", U64),
                ("process_bytes", U64), ("index_bytes", U64), ("factor_bytes", U64), ("output_bytes", U64),
                ("dense_bytes", U64), ("scratch_bytes", U64), ("decoder_bytes", U64), ("slot_bytes", U64),
                ("cache_bytes", U64), ("iteration_bytes", U64), ("iteration_read_bytes", U64), ("slot_count", U32),
                ("threads", U32), ("passes", U32), ("reserved", U32), ("label_bytes", U64), ("copies_bytes", U64),
                ("mean_passes", F64), ("device_budget_bytes", U64), ("device_minimum_bytes", U64),
                ("device_total_bytes", U64), ("device_streams", U32), ("device_count", U32), ("device_name", c_char * 128),
                ("device_slot_bytes", U64), ("device_resident_blocks", U64), ("device_resident_bytes", U64),
                ("device_copied_bytes", U64), ("device_host_bytes", U64), ("device_described", U32),
                ("device_multiprocessors", U32)]


class TtvOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("codec", ENUM), ("overwrite", U32), ("block_bytes", U64),
                ("temp_folder", c_char_p), ("max_temp_bytes", U64), ("sort", U32), ("relabel", ENUM),
                ("compute", POINTER(ComputeOptions)), *fibers("reserved")]


class TtvReport(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("sorted", U32), ("dims", U64 * MAX_ORDER), ("number", F64),
                ("nnz", U64), ("store_bytes", U64), ("bytes_read", U64), ("fibers", U64), ("device_nnz", U64)]


class TtmReport(Structure):
    _fields_ = [("struct_bytes", U64), ("fibers", U64), ("bytes_read", U64), ("bytes_written", U64), ("sorted", U32),
                ("reserved", U32), ("device_nnz", U64)]


class TtmOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("temp_folder", c_char_p), ("elements", U32), ("reserved", U32),
                ("compute", POINTER(ComputeOptions))]


class CpdIteration(Structure):
    _fields_ = [("iteration", U32), ("singular", U32), ("fit", F64), ("delta", F64), ("seconds", F64),
                ("bytes_read", U64), ("heldout", U64), ("heldout_rmse", F64), ("heldout_mae", F64),
                ("reserved", U64 * 5)]


class CpdCheckpoint(Structure):
    _fields_ = [("iteration", U32), ("mode", U32), ("seconds", F64), ("bytes", U64), ("past_count", U64),
                ("past", POINTER(CpdIteration))]


class CpdProgress(Structure):
    _fields_ = [("iteration", U32), ("mode", U32), ("blocks_done", U64), ("blocks", U64)]


ON_CPD_PROGRESS = CFUNCTYPE(c_int, c_void_p, POINTER(CpdProgress))
ON_ITERATION = CFUNCTYPE(c_int, c_void_p, POINTER(CpdIteration))
ON_CHECKPOINT = CFUNCTYPE(None, c_void_p, POINTER(CpdCheckpoint))


class CpdOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("iterations", U32), ("mode_order_set", U32), ("tolerance", F64),
                ("max_seconds", F64), ("regularization", F64), ("seed", U64), ("init_folder", c_char_p),
                ("mode_order", U32 * MAX_ORDER), ("iteration", ON_ITERATION), ("progress", ON_CPD_PROGRESS),
                ("resumed", ON_CHECKPOINT), ("checkpointed", ON_CHECKPOINT), ("context", c_void_p),
                ("compute", POINTER(ComputeOptions)), ("checkpoint_folder", c_char_p), ("checkpoint_seconds", F64),
                ("restart", U32), ("reserved", U32), ("holdout", F64), ("holdout_seed", U64)]


class CpdReport(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("rank", U32), ("iterations", U32), ("stop", ENUM),
                ("fit", F64), ("norm", F64), ("resume_iteration", U32), ("resume_mode", U32), ("resumes", U32),
                ("reserved", U32), ("checkpoints", U64), ("seconds", F64), ("mttkrp_seconds", F64),
                ("solve_seconds", F64), ("fit_seconds", F64), ("checkpoint_seconds", F64), ("bytes_read", U64),
                ("mode_order", U32 * MAX_ORDER), ("heldout", U64), ("heldout_rmse", F64), ("heldout_mae", F64),
                ("heldout_norm", F64), ("device_nnz", U64)]


class PredictOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("index_base", c_int32), ("form", ENUM), ("overwrite", U32),
                ("threads", U32), ("reserved", U32), ("stop", STOP), ("progress", PROGRESS), ("context", c_void_p)]


class SweepRun(Structure):
    _fields_ = [("struct_bytes", U64), ("rank", U32), ("iterations", U32), ("seed", U64), ("fit", F64),
                ("seconds", F64), ("heldout_rmse", F64), ("match", F64), ("stop", ENUM), ("kept", U32),
                ("folder", c_char * 48)]


class SweepRank(Structure):
    _fields_ = [("struct_bytes", U64), ("rank", U32), ("runs", U32), ("best_seed", U64), ("best_fit", F64),
                ("agreement", F64), ("consistency", F64), ("compared", U32), ("reserved", U32), ("note", c_char * 192)]


class SweepSuggestion(Structure):
    _fields_ = [("struct_bytes", U64), ("rank", U32), ("best_rank", U32), ("folder", c_char * 48),
                ("why", c_char * 320)]


ON_SWEEP_RUN = CFUNCTYPE(c_int, c_void_p, POINTER(SweepRun))


class SweepOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("runs", U32), ("keep_all", U32), ("seed", U64), ("consistency", ENUM),
                ("restart", U32), ("max_seconds", F64), ("cpd", POINTER(CpdOptions)), ("run", ON_SWEEP_RUN),
                ("context", c_void_p)]


class TopOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("components", POINTER(U32)), ("component_count", U32), ("by_number", U32),
                ("modes", POINTER(U32)), ("mode_count", U32), ("by_signed", U32), ("rows", U64), ("store", c_char_p),
                ("memory_bytes", U64)]


class TopRow(Structure):
    _fields_ = [("component", U32), ("mode", U32), ("place", U64), ("index", U64), ("value", F64), ("weight", F64),
                ("name", c_char_p), ("title", c_char_p)]


ON_TOP_ROW = CFUNCTYPE(c_int, c_void_p, POINTER(TopRow))


class ReportOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("components", U64), ("rows", U64), ("store", c_char_p), ("record", c_char_p),
                ("memory_bytes", U64), ("overwrite", U32), ("reserved", U32)]


class PredictReport(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("index_base", U32), ("has_values", U32), ("reserved", U32),
                ("rows", U64), ("rmse", F64), ("mae", F64), ("largest", F64), ("values_norm", F64)]


# By the names of the C structs; those with an init function of their own are options.
STRUCTS = {"slc_error": Error, "sluice_convert_options": ConvertOptions, "sluice_convert_report": ConvertReport,
           "sluice_append_options": AppendOptions, "sluice_append_report": AppendReport, "sluice_range": Range,
           "sluice_reshape_options": ReshapeOptions, "sluice_generate_options": GenerateOptions, "sluice_store_info": StoreInfo,
           "sluice_appended": Appended,
           "sluice_layout_info": LayoutInfo, "sluice_layout_options": LayoutOptions,
           "sluice_check_options": CheckOptions, "sluice_export_options": ExportOptions,
           "sluice_model_export_options": ModelExportOptions,
           "sluice_compute_options": ComputeOptions, "sluice_plan": Plan, "sluice_ttv_options": TtvOptions,
           "sluice_ttv_report": TtvReport, "sluice_ttm_options": TtmOptions,
           "sluice_ttm_report": TtmReport, "sluice_cpd_iteration": CpdIteration,
           "sluice_cpd_progress": CpdProgress, "sluice_cpd_checkpoint": CpdCheckpoint, "sluice_cpd_options": CpdOptions, "sluice_cpd_report": CpdReport,
           "sluice_predict_options": PredictOptions, "sluice_predict_report": PredictReport,
           "sluice_sweep_run": SweepRun, "sluice_sweep_rank": SweepRank,
           "sluice_sweep_suggestion": SweepSuggestion, "sluice_sweep_options": SweepOptions,
           "sluice_report_options": ReportOptions, "sluice_top_options": TopOptions, "sluice_top_row": TopRow}
NAMES = {kind: name for name, kind in STRUCTS.items()}
