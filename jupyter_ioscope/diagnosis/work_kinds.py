"""Which functions of libraries do which kind of work: what stacks of fetches are sorted by.

Three tables. `WHOLE` claims everything below its function (reading a member of an archive is one
piece of work, whatever it calls); `INNER` names the innermost function that it knows; `CALLS` is
for C functions, which leave no frame: there the names of what the user's line calls are looked up.
"""

from __future__ import annotations

from typing import NamedTuple

# Kinds of work.
#   text_parse       JSON, CSV, XML, YAML, numbers out of text
#   regex            regular expressions
#   tokenise         text to token ids, one text at a time; tokenise_batch: many at once
#   image_decode     compressed pictures to pixels; image_open: their headers
#   image_resize     resizing, cropping from a larger picture
#   image_other      other work on pixels: converting, copying, colours, augmentation
#   audio_decode     sound and video to samples
#   unpack           inflating compressed bytes; unpack_seek: to get to another place in them
#   npz_member       reading a whole member of an .npz file
#   array_load       reading an array's file (np.load)
#   container_open   opening or closing a file that holds many items, or reading its index
#   container_lookup finding things in such a file: quick while it stays open
#   container_read   reading from such a file that is open; container_query: by a statement
#   table_rows       rows of a data frame
#   dataset_rows     rows of a Hugging Face dataset
#   file_open        opening, closing; file_stat: looking whether and where files are
#   file_read        reading an open file
#   remote           asking a server
#   memory_map       making memory maps and views of them
#   unpickle         unpickling, torch.load
#   tensor_build     tensors and arrays out of lists and numbers, or piece by piece
#   stack            several arrays of one shape into one, in one go
#   to_python        arrays to Python numbers and lists
#   convert          float() and int(): text or numbers
#   collate          torch's own joining of items
#   fetch_loop       torch's own loop over items
#   copy, hash, random, sleep
#   library          any other function of a library
#   user             the user's own Python
KINDS = (
    "text_parse",
    "regex",
    "tokenise",
    "tokenise_batch",
    "image_decode",
    "image_open",
    "image_resize",
    "image_other",
    "audio_decode",
    "unpack",
    "unpack_seek",
    "npz_member",
    "array_load",
    "container_open",
    "container_lookup",
    "container_read",
    "container_query",
    "table_rows",
    "dataset_rows",
    "file_open",
    "file_stat",
    "file_read",
    "remote",
    "memory_map",
    "unpickle",
    "tensor_build",
    "stack",
    "to_python",
    "convert",
    "collate",
    "fetch_loop",
    "copy",
    "hash",
    "random",
    "sleep",
    "library",
    "user",
)


class FrameKind(NamedTuple):
    """A function of a library: part of its file's path, its names (none: any), its kind."""

    path: str
    names: frozenset[str]
    kind: str


def _rows(kind: str, *entries: str) -> tuple[FrameKind, ...]:
    """Entries like `/gzip.py: read seek` (no names after the colon: every function)."""
    found = []
    for entry in entries:
        path, _, names = entry.partition(":")
        found.append(FrameKind(path.strip(), frozenset(names.split()), kind))
    return tuple(found)


WHOLE = (
    *_rows(
        "unpack_seek",
        "/_compression.py: seek _rewind rewind",
        "/compression/_common/_streams.py: seek _rewind rewind",
        "/zipfile.py: seek",
        "/zipfile/__init__.py: seek",
    ),
    *_rows(
        "npz_member",
        "/numpy/lib/_npyio_impl.py: __getitem__",
        "/numpy/lib/npyio.py: __getitem__",
    ),
    # The header of an array's file is a literal of Python: no text of the user's.
    *_rows("array_load", "/numpy/lib/_format_impl.py", "/numpy/lib/format.py"),
    *_rows(
        "text_parse",
        "/numpy/lib/_npyio_impl.py: loadtxt genfromtxt fromregex",
        "/numpy/lib/npyio.py: loadtxt genfromtxt fromregex",
        "/pandas/io/parsers/",
        "/pandas/io/json/",
        "/pandas/io/xml.py",
        "/pandas/io/html.py",
        "/pandas/io/excel/",
        "/json/decoder.py",
        "/json/scanner.py",
        "/simplejson/",
        "/csv.py",
        "/xml/etree/",
        "/xml/dom/",
        "/xml/sax/",
        "/lxml/",
        "/bs4/",
        "/html/parser.py",
        "/html5lib/",
        "/yaml/",
        "/ruamel/yaml/",
        "/tomllib/",
        "/configparser.py",
        "/ast.py: literal_eval",
        "/_strptime.py",
        "/dateutil/parser/",
        "/polars/io/csv/",
        "/polars/io/ndjson.py",
        "/pyarrow/csv.py",
        "/pyarrow/json.py",
    ),
    *_rows(
        "tokenise",
        "/nltk/tokenize/",
        "/spacy/",
        "/transformers/tokenization",
        "/transformers/models/",
        "/sacremoses/",
        "/sentencepiece/",
        "/tiktoken/",
        "/jieba/",
    ),
    *_rows(
        "container_open",
        "/h5py/_hl/files.py: __init__ make_fid make_fapl close __exit__ __del__",
        "/lmdb/",
        "/tarfile.py: open __init__ taropen gzopen bz2open xzopen next getmembers getmember "
        "_load getnames _getmember close __exit__",
        "/zipfile.py: __init__ _RealGetContents close __exit__ __del__ is_zipfile",
        "/zipfile/__init__.py: __init__ _RealGetContents close __exit__ __del__ is_zipfile",
        "/zarr/api/synchronous.py: open open_array open_group",
        "/zarr/convenience.py: open",
        "/zarr/hierarchy.py: open_group",
        "/netCDF4/utils.py",
        "/xarray/backends/api.py: open_dataset open_dataarray open_mfdataset",
        "/pyarrow/parquet/core.py: __init__ read_table read_schema read_metadata",
        "/pyarrow/ipc.py: __init__ open_file open_stream",
        "/pyarrow/feather.py",
        "/pandas/io/parquet.py",
        "/pandas/io/pytables.py: read_hdf open __init__ close",
        "/pandas/io/feather_format.py",
        "/fastparquet/api.py: __init__",
        "/shelve.py: open __init__ close __exit__",
        "/dbm/",
        "/openslide/__init__.py: __init__",
        "/tifffile/tifffile.py: __init__ close __exit__",
        "/nibabel/loadsave.py",
    ),
    *_rows("container_lookup", "/h5py/_hl/group.py"),
    *_rows("table_rows", "/pandas/core/"),
    *_rows("audio_decode", "/torchaudio/", "/soundfile.py", "/librosa/", "/audioread/",
           "/scipy/io/wavfile.py", "/wave.py", "/torchcodec/", "/decord/", "/pydub/",
           "/torchvision/io/video"),
    *_rows("unpickle", "/torch/serialization.py", "/torch/_weights_only_unpickler.py",
           "/joblib/numpy_pickle.py", "/pandas/io/pickle.py"),
    *_rows("remote", "/fsspec/implementations/http.py", "/fsspec/asyn.py", "/s3fs/", "/gcsfs/",
           "/boto3/", "/botocore/", "/requests/", "/urllib3/", "/urllib/request.py", "/httpx/",
           "/http/client.py", "/aiohttp/", "/google/cloud/"),
)  # fmt: skip

INNER = (
    *_rows("collate", "/torch/utils/data/_utils/collate.py"),
    *_rows(
        "fetch_loop",
        "/torch/utils/data/_utils/fetch.py",
        "/torch/utils/data/dataset.py",
        "/torch/utils/data/_utils/worker.py",
        "/torch/utils/data/dataloader.py",
    ),
    *_rows("image_open", "/PIL/Image.py: open preinit init _open_core",
           "/PIL/ImageFile.py: __init__ _open"),
    *_rows("image_decode", "/PIL/ImageFile.py", "ImagePlugin.py", "/PIL/Image.py: frombytes",
           "/torchvision/io/image.py", "/imageio/", "/skimage/io/", "/matplotlib/image.py: imread",
           "/simplejpeg/", "/turbojpeg.py", "/rawpy/", "/pydicom/pixel"),
    *_rows("image_resize", "/PIL/Image.py: resize thumbnail reduce transform __transformer rotate",
           "/torch/nn/functional.py: interpolate grid_sample",
           "/torchvision/transforms/_functional_tensor.py: resize",
           "/skimage/transform/", "/scipy/ndimage/_interpolation.py", "/albumentations/"),
    *_rows("image_other", "/PIL/", "/torchvision/", "/skimage/", "/imgaug/", "/kornia/",
           "/scipy/ndimage/"),
    *_rows("regex", "/re/__init__.py", "/re.py", "/re/_", "/sre_", "/regex/"),
    *_rows("file_read", "/json/__init__.py: load"),  # of the file; parsing has frames of its own
    *_rows("text_parse", "/json/__init__.py: loads", "/codecs.py: decode", "/textwrap.py",
           "/string.py", "/shlex.py", "/unicodedata"),
    *_rows("unpack", "/gzip.py", "/zipfile.py", "/zipfile/__init__.py", "/lzma.py", "/bz2.py",
           "/_compression.py", "/compression/", "/numcodecs/", "/blosc", "/lz4/", "/zstandard/",
           "/tarfile.py: read readinto _read readall"),
    *_rows("container_read", "/h5py/", "/zarr/", "/tarfile.py", "/pyarrow/", "/sqlite3/",
           "/sqlalchemy/", "/netCDF4/", "/xarray/", "/tables/", "/shelve.py",
           "/tifffile/", "/openslide/", "/nibabel/", "/pandas/io/", "/rasterio/", "/polars/"),
    *_rows("dataset_rows", "/datasets/"),
    *_rows("array_load", "/numpy/lib/_npyio_impl.py: load", "/numpy/lib/npyio.py: load",
           "/numpy/lib/_utils_impl.py: safe_eval"),
    *_rows("memory_map", "/numpy/_core/memmap.py", "/numpy/core/memmap.py"),
    *_rows("file_open", "/pathlib.py: open read_bytes read_text", "/pathlib/", "/io.py: open",
           "/smart_open/", "/fsspec/"),
    *_rows("file_stat", "genericpath", "/os.py: walk listdir scandir",
           "/pathlib.py: stat exists is_file is_dir glob iterdir rglob",
           "<frozen os>: walk", "/glob.py", "/fnmatch.py",
           "posixpath: realpath lexists _joinrealpath"),
    *_rows("file_read", "codecs>: decode"),
    *_rows("unpickle", "/pickle.py", "/cloudpickle/", "/dill/", "/msgpack/", "/copyreg.py"),
    *_rows("copy", "/copy.py"),
    *_rows("hash", "/hashlib.py", "/xxhash/"),
    *_rows("random", "/random.py"),
)  # fmt: skip

# Names of calls, the telling ones first: of a line that calls several, the first that is here
# counts. Functions that have Python frames of their own are not here: those frames say it.
CALLS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (kind, frozenset(names.split()))
    for kind, names in (
        ("sleep", "time.sleep"),
        ("image_decode", "cv2.imread cv2.imdecode simplejpeg.decode_jpeg .decode_jpeg av.open"),
        ("image_resize", "cv2.resize cv2.warpAffine cv2.warpPerspective cv2.remap"),
        ("image_other", "cv2.cvtColor cv2.GaussianBlur cv2.flip cv2.rotate"),
        ("audio_decode", "soundfile.read av.open .decode_audio"),
        ("tokenise_batch", ".encode_batch .batch_encode_plus"),
        ("unpack", "zlib.decompress lz4.frame.decompress lz4.block.decompress .decompress "
                   "snappy.decompress zstandard.decompress blosc.decompress bz2.decompress"),
        ("container_open", "sqlite3.connect sqlite3.dbapi2.connect lmdb.open lmdb.Environment "
                           "netCDF4.Dataset rasterio.open osgeo.gdal.Open h5py.File "
                           "zipfile.ZipFile tarfile.open safetensors.safe_open tables.open_file "
                           "duckdb.connect plyvel.DB rocksdb.DB leveldb.LevelDB pyBigWig.open "
                           "pysam.AlignmentFile pysam.FastaFile pysam.VariantFile tiledb.open "
                           "pyarrow.memory_map pyarrow.OSFile pyarrow.ipc.open_file "
                           "pyarrow.parquet.ParquetFile cv2.VideoCapture decord.VideoReader"),
        ("text_parse", "orjson.loads ujson.loads rapidjson.loads simdjson.loads numpy.fromstring "
                       "msgspec.json.decode eval csv.reader lxml.etree.fromstring "
                       "lxml.etree.parse .xpath .iterparse "
                       "datetime.datetime.strptime .split .rsplit .splitlines "
                       ".partition .strip .rstrip .lstrip .translate "
                       ".replace"),
        ("regex", ".findall .finditer .fullmatch .sub .subn"),
        ("tokenise", "tokenizers.Tokenizer .encode_plus .tokenize .EncodeAsIds .word_tokenize"),
        ("unpickle", "pickle.loads pickle.load _pickle.loads marshal.loads msgpack.unpackb "
                     "cloudpickle.loads"),
        ("hash", "hashlib.md5 hashlib.sha1 hashlib.sha256 zlib.crc32 .hexdigest .digest"),
        ("container_query", ".execute .executemany .fetchone .fetchall .fetchmany"),
        ("container_read", ".read_direct"),
        ("file_stat", "os.stat os.listdir os.scandir os.path.exists os.path.getsize os.access"),
        ("file_read", "numpy.fromfile os.pread os.read os.preadv mmap.mmap"),
        ("tokenise", ".encode"),
        ("to_python", ".tolist"),
        ("tensor_build", "torch.tensor torch.as_tensor torch.FloatTensor torch.LongTensor "
                         "torch.Tensor numpy.array numpy.asarray "
                         "numpy.concatenate numpy.fromiter "
                         "torch.cat"),
        ("stack", "torch.stack numpy.stack"),
        ("file_open", "open io.open os.open .close"),
        ("file_read", ".read .readline .readlines .readinto .seek .readall"),
        ("copy", "copy.deepcopy copy.copy"),
        ("convert", "float int complex"),
    )
)  # fmt: skip

# Calls that decode a picture at reduced size.
REDUCING = frozenset((".draft", ".thumbnail"))

# Calls that resize pictures, by their last name.
RESIZING = frozenset(
    ("resize", "Resize", "RandomResizedCrop", "interpolate", "LongestMaxSize", "SmallestMaxSize")
)

# What has to do with locks, by its last name; a read below `with` of a name counts as one. Locks of
# these modules hold threads of one process only.
LOCKS = frozenset(("Lock", "RLock", "Semaphore", "BoundedSemaphore", "FileLock", "flock", "lockf"))
LOCKING = frozenset((".acquire", "with:read"))
OF_THREADS = ("threading.", "asyncio.", "_thread.")

# Files that make randomness, beside what `LineCalls` of whole files tell.
RANDOM_FILES = ("/random.py", "/albumentations/", "/imgaug/")
