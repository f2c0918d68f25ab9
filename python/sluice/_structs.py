"""The structs of include/sluice/, field by field. A test compares their layout with that of the C compiler."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _arguments as arguments

MAX_ORDER = 16
MAX_DEVICES = 16
MAX_QUANTILES = 16
MAX_DISTINCT = 16
U32, U64, F64, ENUM = c_uint32, c_uint64, c_double, c_int
LIMITS = {U32: (0, 2**32 - 1), U64: (0, 2**64 - 1)}


# C names of struct members and functions whose Python name differs.
KEYWORDS = {"memory_bytes": "memory", "max_temp_bytes": "max_temp", "dims": "shape", "dialect": "format",
            "device->memory_bytes": "device_memory", "device->chip": "device_name",
            "device->streams": "streams", "device->split": "split", "device->count": "devices",
            "checkpoint_folder": "checkpoint", "folder": "output", "iterations": "iters", "max_findings": "most",
            "sluice_layout_add": "add_layout", "sluice_layout_gather": "gather_layout"}
FLAGS = {"overwrite", "restart", "again", "drop_layouts", "fast", "deterministic", "keep_indices", "sort", "nonzeros", "header", "keep_all",
         "table", "no_header", "raw_names", "by_signed", "no_cache", "start_only", "keep_zeros"}


def whole(kind: Any, name: str, value: Any) -> Any:
    """Converts a number to an integer type of the library; rejects values that ctypes would truncate."""
    return kind(arguments.whole(name, value, *LIMITS[kind]))


class Structure(ctypes.Structure):
    """A struct that rejects numbers of wrong types or out of range, and strings with zero bytes."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind: Any = {field[0]: field[1] for field in type(self)._fields_}.get(name)
        if name in FLAGS:
            value = arguments.flag(name, value)
        elif kind in LIMITS:
            value = whole(kind, KEYWORDS.get(name, name), value).value
        elif kind is F64:
            value = arguments.real(KEYWORDS.get(name, name), value)
        elif kind is c_char_p and value is not None and b"\0" in value:
            raise arguments.UsageError(f"{name} {value!r} contains a zero character", field=KEYWORDS.get(name, name))
        super().__setattr__(name, value)


class Error(Structure):
    _fields_ = [("status", ENUM), ("system_errno", c_int), ("line", U64), ("column", U64), ("block", U64),
                ("offset", U64), ("field", c_char_p), ("other_field", c_char_p), ("file", c_char * 512), ("message", c_char * 1024)]


class Progress(Structure):
    _fields_ = [("phase", c_char_p), ("done", U64), ("total", U64), ("iteration", U32), ("mode", U32)]


# The callback returns an address, because ctypes would not keep a string alive after the call.
NAME = CFUNCTYPE(c_void_p, c_void_p, U32, U64)
ON_PROGRESS = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))


class RunOptions(Structure):
    _fields_ = [("memory_bytes", U64), ("threads", U32), ("stop", POINTER(c_int)), ("progress", ON_PROGRESS),
                ("context", c_void_p)]


class OutputOptions(Structure):
    _fields_ = [("codec", ENUM), ("relabel", ENUM), ("fibers", ENUM), ("fiber_mode", U32), ("fiber_bits", U32),
                ("overwrite", U32), ("block_bytes", U64), ("temp_folder", c_char_p), ("max_temp_bytes", U64)]


class EntryOptions(Structure):
    _fields_ = [("index_base", ENUM), ("duplicates", ENUM), ("value", ENUM), ("dims_order", U32), ("dims", U64 * MAX_ORDER)]


class TableOptions(Structure):
    _fields_ = [("columns", c_char_p), ("value_column", c_char_p), ("delimiter", c_char), ("no_header", U32),
                ("missing", ENUM), ("null", c_char_p)]


class ConvertOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("output", OutputOptions), ("entries", EntryOptions),
                ("dialect", ENUM), ("restart", U32), ("commit_seconds", F64), ("table", TableOptions),
                ("labels", POINTER(c_char_p)), ("label_count", U64), ("values", c_char_p), ("transform", c_char_p),
                ("source_name", c_char_p), ("keep_zeros", U64)]


class BuilderOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("output", OutputOptions), ("entries", EntryOptions),
                ("name", NAME), ("named_modes", U64), ("titles", c_char_p * MAX_ORDER), ("keep_zeros", U64)]


class ConvertReport(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("order", U32), ("dims", U64 * MAX_ORDER),
                ("index_base", U32), ("relabelled_modes", U32), ("entries", U64), ("skipped", U64), ("duplicates", U64),
                ("explicit_zeros", U64), ("nnz", U64), ("text_bytes", U64), ("store_bytes", U64), ("seconds", F64),
                ("listed_zeros", U64)]


class AppendOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("output", OutputOptions), ("dialect", ENUM),
                ("index_base", ENUM), ("duplicates", ENUM), ("fixed_modes", U32), ("again", U32), ("drop_layouts", U32),
                ("labels", POINTER(c_char_p)), ("label_count", U32), ("table", U32), ("values", c_char_p),
                ("source_name", c_char_p)]


class AppendReport(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("layouts_dropped", U32), ("dims", U64 * MAX_ORDER),
                ("known", U64), ("entries", U64), ("nnz_before", U64), ("nnz", U64), ("skipped", U64)]


class Range(Structure):
    _fields_ = [("mode", U32), ("first", U64), ("last", U64)]


class ReshapeOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("output", OutputOptions), ("transform", c_char_p),
                ("keep_indices", U64)]


class GenerateOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("output", OutputOptions), ("distribution", ENUM),
                ("rank", U32), ("zipf_exponent", F64), ("noise", F64), ("seed", U64), ("best_ttm", U64), ("mode", U64),
                ("fiber_count", U64), ("like", c_char_p), ("scale", F64)]


class StoreInfo(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("value_type", ENUM), ("dims", U64 * MAX_ORDER), ("nnz", U64),
                ("norm", F64), ("store_bytes", U64), ("total_bytes", U64), ("block_count", U64), ("tile_count", U64),
                ("max_block_bytes", U64), ("content_sum", U64), ("codec", ENUM), ("relabelled_modes", U32),
                ("named_modes", U32), ("fiber_bits", U32), ("fiber_mode", U32), ("key_bits", U32), ("entries", U64),
                ("duplicates", U64), ("explicit_zeros", U64), ("index_base", U32), ("appended", U32),
                ("source", c_char * 512), ("dialect", c_char * 32), ("duplicate_policy", c_char * 16),
                ("transforms", c_char * 128), ("writer", c_char * 64), ("keep_zeros", U32), ("all_integers", U32),
                ("listed_zeros", U64), ("value_min", F64), ("value_max", F64), ("distinct_count", U64),
                ("distinct_values", F64 * MAX_DISTINCT)]


class Appended(Structure):
    _fields_ = [("struct_bytes", U64), ("entries", U64), ("source", c_char * 512)]


class LayoutInfo(Structure):
    _fields_ = [("struct_bytes", U64), ("kind", ENUM), ("mode", U32), ("codec", ENUM), ("stripes", U32),
                ("file_bytes", U64), ("block_count", U64)]


class LayoutOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions)]


ON_FOUND = CFUNCTYPE(None, c_void_p, POINTER(Error))
ON_LEFTOVER = CFUNCTYPE(None, c_void_p, c_char_p)


class CheckOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("fast", U32), ("max_findings", U32), ("found", ON_FOUND),
                ("leftover", ON_LEFTOVER)]


class ExportOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("form", ENUM), ("index_base", ENUM), ("overwrite", U64),
                ("header", U64)]


class ModelExportOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("form", ENUM), ("overwrite", U32), ("store", c_char_p),
                ("raw_names", U64)]


class DevicePlan(Structure):
    _fields_ = [("struct_bytes", U64), ("budget_bytes", U64), ("minimum_bytes", U64), ("total_bytes", U64),
                ("slot_bytes", U64), ("resident_blocks", U64), ("resident_bytes", U64), ("copied_bytes", U64),
                ("host_bytes", U64), ("streams", U32), ("count", U32), ("described", U32), ("multiprocessors", U32),
                ("name", c_char * 128)]


class DeviceOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("kind", ENUM), ("split", ENUM), ("split_fraction", F64), ("memory_bytes", U64),
                ("streams", U32), ("count", U32), ("numbers", U32 * MAX_DEVICES), ("chip", c_char_p),
                ("plan", POINTER(DevicePlan))]


class ComputeOptions(Structure):
    _fields_ = [("precision", ENUM), ("io", ENUM), ("schedule", ENUM), ("pin", ENUM), ("layouts", ENUM), ("passes", ENUM),
                ("copies", ENUM), ("deterministic", U32), ("slots", U32), ("no_cache", U32), ("io_limit", U64),
                ("device", POINTER(DeviceOptions))]


class Plan(Structure):
    _fields_ = [("struct_bytes", U64), ("budget_bytes", U64), ("minimum_bytes", U64), ("total_bytes", U64),
                ("process_bytes", U64), ("index_bytes", U64), ("factor_bytes", U64), ("output_bytes", U64),
                ("dense_bytes", U64), ("scratch_bytes", U64), ("decoder_bytes", U64), ("label_bytes", U64),
                ("copies_bytes", U64), ("cache_bytes", U64), ("slot_bytes", U64), ("slot_count", U32), ("threads", U32),
                ("passes", F64), ("iteration_bytes", U64), ("iteration_read_bytes", U64)]


class MttkrpOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("compute", ComputeOptions), ("part", U32), ("parts", U32),
                ("weights", c_void_p)]


class TtvOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("output", OutputOptions), ("compute", ComputeOptions),
                ("sort", U64), ("part", U32), ("parts", U32)]


class TtvReport(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("sorted", U32), ("dims", U64 * MAX_ORDER), ("number", F64),
                ("nnz", U64), ("store_bytes", U64), ("bytes_read", U64), ("fibers", U64), ("device_nnz", U64)]


class TtvOperatorOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions)]


class TtvOperatorInfo(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("mode", U32), ("dims", U64 * MAX_ORDER), ("fibers", U64),
                ("nnz", U64), ("used", U64), ("memory_bytes", U64)]


class TtmOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("compute", ComputeOptions), ("temp_folder", c_char_p),
                ("nonzeros", U64), ("part", U32), ("parts", U32)]


class JoinOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("temp_folder", c_char_p), ("max_temp_bytes", U64),
                ("overwrite", U64)]


class TtmReport(Structure):
    _fields_ = [("struct_bytes", U64), ("fibers", U64), ("bytes_read", U64), ("bytes_written", U64), ("sorted", U64),
                ("device_nnz", U64)]


class Iteration(Structure):
    _fields_ = [("iteration", U32), ("singular", U32), ("fit", F64), ("delta", F64), ("seconds", F64),
                ("bytes_read", U64), ("heldout", U64), ("heldout_rmse", F64), ("heldout_mae", F64),
                ("objective", F64), ("violation", F64), ("inner", F64), ("heldout_deviance", F64)]


class Checkpoint(Structure):
    _fields_ = [("iteration", U32), ("mode", U32), ("seconds", F64), ("bytes", U64), ("past_count", U64),
                ("past", POINTER(POINTER(Iteration)))]


ON_ITERATION = CFUNCTYPE(c_int, c_void_p, POINTER(Iteration))
ON_CHECKPOINT = CFUNCTYPE(None, c_void_p, POINTER(Checkpoint))


class CpdOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("compute", ComputeOptions), ("iterations", U32),
                ("start_only", U32), ("tolerance", F64), ("max_seconds", F64), ("regularization", F64), ("seed", U64),
                ("init_folder", c_char_p), ("mode_order", U32 * MAX_ORDER), ("mode_order_count", U32), ("restart", U32),
                ("checkpoint_folder", c_char_p), ("checkpoint_seconds", F64), ("holdout", F64), ("holdout_seed", U64),
                ("iteration", ON_ITERATION), ("resumed", ON_CHECKPOINT), ("checkpointed", ON_CHECKPOINT),
                ("method", U32), ("nonnegative", U32), ("simplex", U32), ("reserved", U32),
                ("l1", POINTER(F64)), ("regularizations", POINTER(F64)),
                ("smooth", POINTER(F64)),
                ("low", POINTER(F64)), ("high", POINTER(F64)),
                ("loss", U32), ("unlisted", U32), ("biases", U32), ("inner", U32), ("huber", F64),
                ("row_solver", c_void_p)]


class ModelInfo(Structure):
    _fields_ = [("struct_bytes", U64), ("order", U32), ("rank", U32), ("dims", U64 * MAX_ORDER), ("iterations", U32),
                ("stop_reason", ENUM), ("fit", F64), ("norm", F64), ("mode_order", U32 * MAX_ORDER),
                ("resume_iteration", U32), ("resume_mode", U32), ("resumes", U64), ("checkpoints", U64), ("seconds", F64),
                ("mttkrp_seconds", F64), ("solve_seconds", F64), ("fit_seconds", F64), ("checkpoint_seconds", F64),
                ("bytes_read", U64), ("heldout", U64), ("heldout_rmse", F64), ("heldout_mae", F64), ("heldout_norm", F64),
                ("device_nnz", U64), ("biases", U32), ("bias_modes", U32), ("objective", F64), ("violation", F64),
                ("heldout_deviance", F64), ("huber", F64), ("loss", U64)]


class PredictOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions)]


class PredictTextOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("dialect", ENUM), ("index_base", ENUM), ("form", ENUM),
                ("overwrite", U32), ("store", c_char_p), ("columns", c_char_p), ("value_column", c_char_p),
                ("null", c_char_p)]


class SweepRun(Structure):
    _fields_ = [("struct_bytes", U64), ("rank", U32), ("iterations", U32), ("seed", U64), ("fit", F64),
                ("seconds", F64), ("heldout_rmse", F64), ("match", F64), ("stop_reason", ENUM), ("kept", U32),
                ("folder", c_char * 48), ("heldout_deviance", F64)]


class SweepRank(Structure):
    _fields_ = [("struct_bytes", U64), ("rank", U32), ("runs", U32), ("best_seed", U64), ("best_fit", F64),
                ("agreement", F64), ("consistency", F64), ("compared", U64), ("note", c_char * 192),
                ("reached", U64)]


class SweepSuggestion(Structure):
    _fields_ = [("struct_bytes", U64), ("rank", U32), ("best_rank", U32), ("folder", c_char * 48),
                ("why", c_char * 320)]


ON_SWEEP_RUN = CFUNCTYPE(c_int, c_void_p, POINTER(SweepRun))


class SweepOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("cpd", POINTER(CpdOptions)), ("runs", U32), ("keep_all", U32), ("seed", U64),
                ("consistency", ENUM), ("restart", U32), ("max_seconds", F64), ("completed", ON_SWEEP_RUN)]


class TopOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("components", POINTER(U32)), ("modes", POINTER(U32)),
                ("component_count", U32), ("mode_count", U32), ("by_number", U32), ("by_signed", U32), ("rows", U64),
                ("store", c_char_p)]


class TopRow(Structure):
    _fields_ = [("component", U32), ("mode", U32), ("place", U64), ("index", U64), ("value", F64), ("weight", F64),
                ("name", c_char_p), ("title", c_char_p)]


ON_TOP_ROW = CFUNCTYPE(c_int, c_void_p, POINTER(TopRow))


class ReportOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("components", U64), ("rows", U64), ("store", c_char_p),
                ("record", c_char_p), ("overwrite", U64)]


class PredictReport(Structure):
    _fields_ = [("struct_bytes", U64), ("dialect", ENUM), ("index_base", U32), ("rows", U64), ("has_values", U64),
                ("rmse", F64), ("mae", F64), ("largest", F64), ("values_norm", F64), ("unknown", U64),
                ("deviance", F64)]


class ResidualsOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions), ("score", ENUM), ("io", ENUM), ("top", U64),
                ("quantiles", POINTER(F64)), ("quantile_count", U64), ("io_limit", U64)]


class Residual(Structure):
    _fields_ = [("place", U64), ("value", F64), ("model", F64), ("index", U64 * MAX_ORDER),
                ("deviance", F64)]


ON_RESIDUAL = CFUNCTYPE(c_int, c_void_p, POINTER(Residual))


class CompareOptions(Structure):
    _fields_ = [("struct_bytes", U64), ("run", RunOptions)]


class ComponentMatch(Structure):
    _fields_ = [("component", U32), ("first_component", U32), ("similarity", F64)]


class ComparedRun(Structure):
    _fields_ = [("number", U32), ("rank", U32), ("iterations", U32), ("match_count", U32), ("fit", F64), ("score", F64),
                ("matches", POINTER(ComponentMatch))]


ON_COMPARED = CFUNCTYPE(c_int, c_void_p, POINTER(ComparedRun))


class ResidualsReport(Structure):
    _fields_ = [("struct_bytes", U64), ("nnz", U64), ("norm", F64), ("values_norm", F64), ("rmse", F64), ("mae", F64),
                ("mean", F64), ("largest", F64), ("quantiles", F64 * MAX_QUANTILES), ("bytes_read", U64), ("passes", U32),
                ("listed", U32), ("deviance", F64)]


def _c_name(kind: Any) -> str:
    """Returns the name of the C struct, such as sluice_convert_options for ConvertOptions."""
    return "sluice" + "".join("_" + letter.lower() if letter.isupper() else letter for letter in kind.__name__)


STRUCTS = {_c_name(kind): kind for kind in Structure.__subclasses__()}
