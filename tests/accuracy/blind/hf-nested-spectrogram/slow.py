"""spectrograms stored as lists of lists, read with the torch format"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "hf-nested-spectrogram")

import numpy as np
from datasets import Dataset, Features, List, Value, load_from_disk
from torch.utils.data import DataLoader

DISK = os.path.join(ROOT, "speech")
FEATURES = Features({"mel": List(List(Value("float32"))), "speaker": Value("int64")})


def prepare():
    if not os.path.isdir(DISK):
        rng = np.random.default_rng(0)
        def rows():
            for i in range(2_400):
                yield {"mel": rng.standard_normal((64, 80)).astype(np.float32), "speaker": i % 90}
        Dataset.from_generator(rows, features=FEATURES, cache_dir=os.path.join(ROOT, "cache")).save_to_disk(DISK)


def make_loader():
    return DataLoader(load_from_disk(DISK).with_format("torch"), batch_size=24, shuffle=True)
