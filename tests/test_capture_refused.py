"""A whole profile where nobody may attach, as in many containers."""

from __future__ import annotations

import json

import pytest

from tests.test_capture_rights import without_right

pytest.importorskip("torch")

PROFILE = """
import json
from jupyter_ioscope import api
from jupyter_ioscope.views.payload import report_payload
from tests.loaders_under_test import Numbers
from torch.utils.data import DataLoader

for attempt in range(4):  # where other programs take the cores there may be no verdict
    with api.profile() as p:
        for batch in DataLoader(Numbers(240, busy_s=0.01), batch_size=4, num_workers=2):
            pass
    own = [row.resource for row in p.diagnosis.findings if row.cause != "cores_taken"]
    if own[:1] == ["worker_cpu"]:
        break
stacks = p.stacks
names = sorted({frame.name for frame in stacks.frames}) if stacks else []
print(json.dumps({
    "tier": p.profile.tier,
    "source": stacks.source if stacks else None,
    "workers": sorted({stack.worker for stack in stacks.stacks}) if stacks else [],
    "burn": "burn" in names,
    "ours": [frame.file for frame in stacks.frames if "jupyter_ioscope" in frame.file],
    "batches": len(p.batches),
    "fetches": len(p.profile.fetches),
    "top": own[0] if own else None,
    "text": str(p),
    "flames": report_payload(p.profile, p.diagnosis)["flameSource"],
}))
"""


@pytest.mark.timeout(300)
def test_without_the_right_to_attach_workers_sample_themselves_and_the_report_says_so() -> None:
    done = without_right(PROFILE)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["tier"] == "no_ptrace"
    assert answer["source"] == "in-process"
    assert {0, 1} <= set(answer["workers"])
    assert answer["burn"]
    assert answer["ours"] == []
    assert answer["batches"] == answer["fetches"] == 60
    assert answer["top"] == "worker_cpu"
    assert "lacks the right (SYS_PTRACE)" in answer["text"]
    assert answer["flames"].startswith("in-process")
