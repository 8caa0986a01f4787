"""The files of deploy/: checked as far as that goes without a container engine."""

from __future__ import annotations

import fnmatch
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from demur.cli import app, serve
from demur.pipeline.config import read_config
from demur.version import __version__

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
GRACE = inspect.signature(serve.run).parameters["grace"].default
yaml = pytest.importorskip("yaml", reason="PyYAML comes with the tools of the tests")


def read(name):
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def instructions():
    """The instructions of the Dockerfile, each whole on one line."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line and not line.startswith("#")]


def said(keyword):
    return [rest for name, rest in instructions() if name == keyword]


def of_serve(arguments):
    """What `demur serve` makes of arguments; a flag or a value that it does not know is an error."""
    verb, *flags = arguments
    assert verb == "serve"
    return get_command(app).commands["serve"].make_context("serve", flags).params


def copied():
    """What the image is built from, as paths in the repository."""
    whole = [shlex.split(rest) for rest in said("COPY") if "--from=" not in rest]
    return [source for words in whole for source in [word for word in words if not word.startswith("--")][:-1]]


def seconds(text):
    assert text.endswith("s")
    return float(text.removesuffix("s"))


def test_the_image_starts_a_service_that_asks_for_keys_and_runs_as_nobody():
    (command,) = said("CMD")
    params = of_serve(json.loads(command))
    assert params["require_keys"]
    assert params["host"] == "0.0.0.0"
    assert said("EXPOSE") == [str(params["port"])]
    assert said("USER") == ["10001"]
    assert not re.search(r"(?i)(password|api_key|token)\s*=\s*\S", "\n".join(said("ENV") + said("ARG")))
    (health,) = said("HEALTHCHECK")
    assert f"http://127.0.0.1:{params['port']}/healthz" in health
    (entry,) = map(json.loads, said("ENTRYPOINT"))
    assert any(rest.endswith(f"/{entry[0]}") for rest in said("COPY"))


def test_what_the_image_copies_is_there_and_nothing_else_is_sent():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines
    assert sorted(let_in) == sorted(copied())
    assert all((ROOT / source).exists() for source in copied())
    assert not any(fnmatch.fnmatch(".venv", source) for source in let_in)


def test_the_wheel_can_be_built_from_what_the_image_copies(tmp_path):
    pytest.importorskip("hatchling")
    for source in copied():
        there, here = tmp_path / source, ROOT / source
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, there)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "wheels")]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert len(list((tmp_path / "wheels").glob("demur-*.whl"))) == 1


def test_the_extras_of_the_image_are_extras():
    told = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    mentioned = re.findall(r"EXTRAS=([\w,]+)", (DEPLOY / "Dockerfile").read_text())
    assert len(mentioned) == 2
    for extra in ",".join(mentioned).split(","):
        assert re.search(rf"^{extra} = \[", told, re.MULTILINE), extra


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_secrets_come_from_files_and_demur_takes_the_place_of_the_shell(tmp_path):
    (tmp_path / "demur").write_text('#!/bin/sh\necho "$$|${OPENAI_API_KEY-unset}|${PGPASSWORD-unset}|$*"\n')
    (tmp_path / "demur").chmod(0o755)
    (tmp_path / "password").write_text("two words $HOME `id` 'x'\n")
    (tmp_path / "empty").write_text("")
    files = {"PGPASSWORD_FILE": str(tmp_path / "password"), "OPENAI_API_KEY_FILE": str(tmp_path / "empty")}
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **files}
    with subprocess.Popen(
        ["sh", str(DEPLOY / "entrypoint.sh"), "serve", "a b"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate(timeout=300)
    assert out.rstrip("\n") == f"{process.pid}|unset|two words $HOME `id` 'x'|serve a b"
    environment["PGPASSWORD_FILE"] = str(tmp_path / "missing")
    failed = subprocess.run(["sh", str(DEPLOY / "entrypoint.sh")], env=environment, capture_output=True, check=False)
    assert failed.returncode != 0
    assert b"missing" in failed.stderr


def test_compose_serves_on_the_database_with_keys():
    services = read("compose.yaml")["services"]
    params = of_serve(services["demur"]["command"])
    assert params["require_keys"]
    address = params["store"]
    assert re.fullmatch(r"postgresql://demur@database/demur", address)  # no password in what `docker inspect` shows
    database = services["database"]["environment"]
    assert (database["POSTGRES_USER"], database["POSTGRES_DB"]) == ("demur", "demur")
    assert services["demur"]["depends_on"]["database"] == {"condition": "service_healthy"}
    assert seconds(services["demur"]["stop_grace_period"]) > params["grace"] + 10
    assert params["policy"] == ["policy.json"]


def test_compose_holds_together():
    whole = read("compose.yaml")
    for name, service in whole["services"].items():
        assert set(service.get("secrets", ())) <= set(whole["secrets"]), name
        assert set(service["networks"]) <= set(whole["networks"]), name
        assert set(service.get("depends_on", ())) <= set(whole["services"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["read_only"] is True, name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert 64 <= service["pids_limit"] <= 1024, name
        assert not service.get("privileged"), name
        for folder in service.get("tmpfs", ()):  # what is written there is memory
            assert ":size=" in folder, folder
        assert "." not in service["image"].partition("/")[0] or "/" not in service["image"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        for variable in service.get("environment", {}):
            assert not re.search("PASSWORD$|KEY$|SECRET$|TOKEN$", variable), f"{variable} should come from a file"
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).is_file(), source
            elif not source.startswith("$"):
                assert source in whole["volumes"]
    assert "healthcheck" in whole["services"]["database"]
    assert {Path(secret["file"]).parent for secret in whole["secrets"].values()} == {Path("secrets")}
    assert (DEPLOY / "secrets" / ".gitignore").read_text().splitlines()[1:] == ["*", "!.gitignore"]


EXACT = r":v?\d+\.\d+(\.\d+)?(-[\w.-]+)?$"
"""A tag that names one release: not latest, and no number that moves on."""


def test_images_are_named_by_exact_tags():
    services = read("compose.yaml")["services"]
    bases = re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    for image in (*(service["image"] for service in services.values()), *bases):
        assert re.search(EXACT, image), image
    assert all(re.search(r":\d+\.\d+\.\d+-", image) for image in bases)
    assert services["demur"]["image"] == f"demur:{__version__}"


def test_docker_itself_takes_the_compose_file():
    engine = shutil.which("docker")
    if engine is None or subprocess.run([engine, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not here")
    environment = {**os.environ, "OPENAI_BASE_URL": "http://model:8000/v1"}
    asked = [engine, "compose", "--file", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    checked = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_prometheus_scrapes_every_replica_with_a_key():
    config = read("prometheus.yml")
    assert set(config) == {"global", "rule_files", "scrape_configs"}
    (job,) = config["scrape_configs"]
    assert set(job) == {"job_name", "authorization", "dns_sd_configs"}
    compose = read("compose.yaml")
    mounted = {volume.split(":")[1] for volume in compose["services"]["prometheus"]["volumes"]}
    assert set(config["rule_files"]) <= mounted
    secret = Path(job["authorization"]["credentials_file"])
    assert secret.parent == Path("/run/secrets")
    assert secret.name in compose["services"]["prometheus"]["secrets"]
    (found,) = job["dns_sd_configs"]
    assert found["names"] == ["demur"]
    assert found["port"] == of_serve(compose["services"]["demur"]["command"])["port"]


def test_alerts_are_about_figures_that_there_are():
    from demur.server.api.metrics import Metrics

    exposed = {
        name
        for family in Metrics().registry.collect()
        for name in (family.name, *(f"{family.name}_{ending}" for ending in ("total", "bucket", "sum", "count")))
    }
    rules = [rule for group in read("alerts.yml")["groups"] for rule in group["rules"]]
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        named = set(re.findall(r"\bdemur_\w+", rule["expr"]))
        assert named <= exposed, rule["alert"]
    for figure in (
        "demur_alarm", "demur_failures_total", "demur_request_seconds_bucket", "demur_overhead_seconds_bucket",
        'demur_refused_total{status=~"5..', "increase(demur_requests_total", "absent(up",
    ):  # fmt: skip
        assert any(figure in rule["expr"] for rule in rules), figure


def test_prometheus_itself_takes_the_rules_and_they_fire_on_what_they_are_for():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here")
    for told in (["check", "rules", DEPLOY / "alerts.yml"], ["test", "rules", ROOT / "tests" / "alerts_fired.yml"]):
        ran = subprocess.run([promtool, *told], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_rules_name_labels_that_figures_have():
    from demur.server.api.metrics import Metrics

    labels = {f"demur_{name}": getattr(Metrics(), attribute)._labelnames for name, attribute in (
        ("refused_total", "refused"), ("requests_total", "requests"), ("failures_total", "failures"),
    )}  # fmt: skip
    rules = [rule for group in read("alerts.yml")["groups"] for rule in group["rules"]]
    for rule in rules:
        for name, chosen in re.findall(r"\b(demur_\w+)\{(\w+)", rule["expr"]):
            assert chosen in labels[name], rule["alert"]


def unit():
    lines = (DEPLOY / "demur.service").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
    return {name: value for name, value in pairs if name != "SystemCallFilter"}


def test_the_unit_leaves_time_for_the_end_and_may_write_one_folder():
    told = unit()
    program, *arguments = shlex.split(told["ExecStart"])
    params = of_serve(arguments)
    assert program == "/opt/demur/bin/demur"
    assert params["grace"] == GRACE
    assert float(told["TimeoutStopSec"]) > params["grace"] + 10
    assert Path(params["store"]).parent == Path("/var/lib") / told["StateDirectory"]
    wanted = {"DynamicUser": "yes", "ProtectSystem": "strict", "NoNewPrivileges": "yes", "Restart": "on-failure"}
    wanted |= {"MemoryMax": "2G", "TasksMax": "256", "UMask": "0077"}
    assert {name: told[name] for name in wanted} == wanted


def test_systemd_itself_takes_the_unit_and_finds_it_closed(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not here")
    here = tmp_path / "demur.service"
    here.write_text((DEPLOY / "demur.service").read_text().replace("/opt/demur/bin/demur", sys.executable))
    verified = subprocess.run([analyze, "verify", str(here)], capture_output=True, text=True, check=False)
    complaints = [line for line in verified.stderr.splitlines() if "demur.service" in line]
    assert not complaints, complaints
    judged = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=20", "--no-pager", str(here)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in judged.stderr:
        pytest.skip("this systemd does not judge files")
    assert judged.returncode == 0, judged.stdout[-500:] + judged.stderr


def test_the_configuration_is_one():
    assert read_config(DEPLOY / "demur.toml", ()).concurrency == 64
