"""What kind of work a stack is in the middle of, by the libraries whose functions are in it.

Only files of installed libraries and of the standard library count, never names that a user chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jupyter_ioscope.model.readings import Frame

_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")


class _Sign(NamedTuple):
    """Files (parts of a path) and, where they are not empty, functions that tell a kind."""

    kind: str
    files: tuple[str, ...]
    functions: tuple[str, ...] = ()


# Kinds of a step's work that are neither computing nor data.
SAVING = "saving"
LOGGING = "logging"
PLOTTING = "plotting"
PRINTING = "printing"
WRITING = "writing text"
PICTURES = "writing pictures or sound"
COUNTING = "counting values into histograms"
SYNCING = "waiting until data is on the disk"
# Calls of the user's lines that leave no frame of their own (functions of C).
_CALLS = {"os.fsync": SYNCING, "os.fdatasync": SYNCING, "os.sync": SYNCING, "pickle.dump": SAVING,
          "cv2.imwrite": PICTURES, "cv2.VideoWriter.write": PICTURES, "soundfile.write": PICTURES,
          "torch.histc": COUNTING, "torch.histogram": COUNTING, ".histc": COUNTING}  # fmt: skip
_CHEAP = (".fileno", ".flush", ".close", ".name", ".write", "open", "os.open", "os.close", "str",
          "len", "os.path.join", "pathlib.Path")  # fmt: skip
_STEP = (
    _Sign(SAVING, ("torch/serialization.py",), ("save", "_save", "_legacy_save")),
    _Sign(SAVING, ("torch/distributed/checkpoint/", "safetensors/"), ()),
    _Sign(SAVING, ("numpy/lib/",), ("save", "savez", "_savez", "savez_compressed", "write_array")),
    _Sign(SAVING, ("joblib/numpy_pickle.py",), ("dump",)),
    _Sign(SAVING, ("/lib/python",), ("_Pickler.dump", "copyfileobj", "copyfile", "copytree")),
    _Sign(SAVING, ("transformers/modeling_utils.py",), ("save_pretrained",)),
    _Sign(LOGGING, ("logging/__init__.py", "logging/handlers.py", "/loguru/", "/structlog/")),
    _Sign(LOGGING, ("/tensorboard/", "/tensorboardX/", "/wandb/", "/mlflow/", "/comet_ml/")),
    _Sign(LOGGING, ("/neptune/", "/aim/", "/clearml/")),
    _Sign(PLOTTING, ("/matplotlib/", "/seaborn/", "/plotly/", "/bokeh/", "/altair/")),
    _Sign(PRINTING, ("ipykernel/iostream.py", "ipykernel/zmqshell.py", "IPython/core/display")),
    _Sign(PRINTING, ("/tqdm/", "/rich/", "/ipywidgets/", "pprint.py", "IPython/display.py")),
    _Sign(WRITING, ("json/__init__.py",), ("dump", "dumps")),
    _Sign(WRITING, ("json/encoder.py", "yaml/representer.py", "yaml/emitter.py")),
    _Sign(WRITING, ("csv.py",), ("DictWriter.writerow", "DictWriter.writerows")),
    _Sign(WRITING, ("pandas/io/formats/", "pandas/io/sql.py", "pandas/io/json/")),
    _Sign(PICTURES, ("/PIL/Image.py",), ("save",)),
    _Sign(PICTURES, ("/torchvision/utils.py", "/torchvision/io/"), ("save_image", "make_grid",
          "write_png", "write_jpeg", "write_video")),
    _Sign(PICTURES, ("/imageio/", "/skimage/io/"), ("imwrite", "imsave", "mimwrite", "mimsave")),
    _Sign(PICTURES, ("/scipy/io/wavfile.py", "/soundfile.py", "/torchaudio/"), ("write", "save")),
    _Sign(COUNTING, ("/numpy/lib/_histograms_impl.py", "/numpy/lib/histograms.py")),
)  # fmt: skip

# Kinds of work before the first batch.
IMPORTING = "importing libraries"
SAMPLING = "making the order of the samples"
SCANNING = "listing and checking files"
READING = "reading an index or a table"
LOADING = "reading whole arrays into memory"
FETCHING_FILES = "downloading"
MODELS = "loading a model"
DATASETS = "preparing a dataset"
PICKLING = "pickling the dataset for the workers"
SENDING = "sending the dataset to the workers"
STARTING = "starting processes"
# What a step does not do again and again.
NEVER_IN_STEPS = (IMPORTING, SCANNING, DATASETS, SAMPLING)
_SPAWN = ("multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py",
          "multiprocessing/popen_spawn_win32.py")  # fmt: skip
_BEFORE = (
    _Sign(IMPORTING, ("<frozen importlib",)),
    _Sign(PICKLING, ("multiprocessing/reduction.py",), ("dump",)),
    _Sign(SENDING, _SPAWN, ("_launch", "Popen._launch")),
    _Sign(STARTING, ("multiprocessing/process.py", "multiprocessing/popen_fork.py")),
    _Sign(SAMPLING, ("torch/utils/data/sampler.py", "torch/utils/data/distributed.py")),
    # Asking a sampler of the user's for the next indices, in the consumer.
    _Sign(SAMPLING, ("torch/utils/data/dataloader.py",), ("_next_index",)),
    _Sign(FETCHING_FILES, ("/urllib3/", "/requests/", "http/client.py", "/huggingface_hub/")),
    _Sign(FETCHING_FILES, ("urllib/request.py", "/aiohttp/", "/fsspec/", "/botocore/")),
    _Sign(MODELS, ("torch/serialization.py",), ("load", "_load")),
    _Sign(MODELS, ("transformers/modeling_utils.py", "torch/nn/modules/", "/timm/")),
    _Sign(DATASETS, ("-packages/datasets/",)),
    _Sign(SCANNING, ("glob.py", "/pathlib.py", "pathlib/", "fnmatch.py", "genericpath.py")),
    _Sign(SCANNING, ("/os.py",), ("walk", "_walk", "fwalk", "scandir", "stat")),
    _Sign(SCANNING, ("posixpath.py", "ntpath.py", "<frozen os>", "<frozen posixpath>")),
    _Sign(SCANNING, ("<frozen genericpath>", "torchvision/datasets/folder.py")),
    _Sign(LOADING, ("numpy/lib/",), ("load", "read_array", "NpzFile.__getitem__")),
    _Sign(LOADING, ("/h5py/_hl/dataset.py",), ("__getitem__", "__array__")),
    _Sign(READING, ("json/", "csv.py", "/pandas/", "/pyarrow/", "/polars/", "/h5py/", "/lmdb/")),
    _Sign(READING, ("numpy/lib/", "pickle.py", "xml/", "/yaml/", "tarfile.py", "zipfile")),
)

# Frames of loaders: below one of them the consumer gets its batch.
_LOADERS = ("/torch/utils/data/", "-packages/datasets/", "/accelerate/data_loader.py")
_FETCHING = ("/_utils/fetch.py", "/_utils/collate.py")


def step_kind(frames: Sequence[Frame]) -> str:
    """Which kind of side work a step's stack is in; "" for anything else. The outermost library
    decides: a logger that writes JSON logs."""
    for frame in frames:
        for sign in _STEP:
            if _matches(frame, sign):
                return sign.kind
    return ""


def call_kind(names: Sequence[str]) -> str:
    """Which kind of side work a line of the user's is in, by what it calls; "" for others, and
    where the line calls something else that may take long."""
    if any(name not in _CALLS and name not in _CHEAP for name in names):
        return ""
    return next((_CALLS[name] for name in names if name in _CALLS), "")


def before_kind(frames: Sequence[Frame]) -> str:
    """What a stack from before the first batch prepares; "" where no library tells. The order of
    the list decides: starting a process pickles, whatever asked for it imports."""
    for sign in _BEFORE:
        if any(_matches(frame, sign) for frame in frames):
            return sign.kind
    return ""


def in_loader(frames: Sequence[Frame]) -> bool:
    """Whether the stack is inside a loader's `iter()` or `next()`."""
    return any(part in path(frame) for frame in frames for part in _LOADERS)


def in_fetch(frames: Sequence[Frame]) -> bool:
    """Whether the stack gets items or joins them."""
    return any(path(frame).endswith(_FETCHING) for frame in frames)


def path(frame: Frame) -> str:
    return frame.file.replace("\\", "/")


def _matches(frame: Frame, sign: _Sign) -> bool:
    file = path(frame)
    if not (file.startswith("<frozen") or any(part in file for part in _INSTALLED)):
        return False
    if not any(part in file for part in sign.files):
        return False
    name = frame.name.rpartition(".<locals>.")[2]
    return not sign.functions or name in sign.functions or name.rpartition(".")[2] in sign.functions
