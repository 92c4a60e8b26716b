"""The files under ``examples/production`` name only what exists: commands, settings, ports, tables."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from command_lines import named_in, understand, understand_mention
from server_users import CLUSTERED, SHARD
from settings_classes import BY_TABLE, CLASSES
from toml_files import tomllib

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.security import new_key
from mast_trace_collector.settings import variable_of
from mast_trace_collector.storage import Store, embedded, migrate
from mast_trace_collector.storage.grants import warnings_of
from mast_trace_collector.storage.migrations import migrations
from mast_trace_collector.storage.readers import READABLE, Rows
from mast_trace_collector.storage.removal.erasure import erase, of_runs
from mast_trace_collector.storage.removal.retention import set_ttl, shrink_to
from mast_trace_collector.storage.removal.run_tables import run_tables
from mast_trace_collector.storage.removal.thinning import thin
from mast_trace_collector.storage.schema_templates import SchemaOptions
from mast_trace_collector.storage.search_index import add_search_index, drop_search_index
from mast_trace_collector.storage.span_writer import PoisonError, SpanWriter
from mast_trace_dashboards.cli.commands.dashboards import export
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
CONFINED = {Rows.OF_PROJECT, Rows.OF_TRACES}
OF_PROJECTS = {table for table, rows in READABLE.items() if rows in CONFINED}
FOLDER = ROOT / "examples" / "production"
VARIABLES = {variable_of(name) for each in CLASSES for name in each.model_fields}
OTHERS_VARIABLES = {"MAST_TRACE_CONFIG", "OPENAI_API_KEY", "OPENAI_BASE_URL"}


def compose() -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return made


def kubernetes() -> list[dict[str, Any]]:
    files = sorted((FOLDER / "kubernetes").glob("*.yaml"))
    assert [file.name for file in files] == ["mast-trace.yaml", "web.yaml"]
    return [each for file in files for each in yaml.safe_load_all(file.read_text())]


def named(name: str, *kinds: str) -> dict[str, Any]:
    """The one object of a name, of some kinds."""
    (found,) = [
        each
        for each in kubernetes()
        if each["metadata"]["name"] == name and (not kinds or each["kind"] in kinds)
    ]
    return found


def has_pods(each: dict[str, Any]) -> bool:
    return "template" in each.get("spec", {})


def containers() -> list[dict[str, Any]]:
    specs = [each["spec"]["template"]["spec"] for each in kubernetes() if has_pods(each)]
    return [container for pod in specs for container in pod["containers"]]


def command_lines() -> dict[str, list[str]]:
    ours = {
        name: service["command"]
        for name, service in compose()["services"].items()
        if service["image"].startswith("mast-trace")
    }
    return {**ours, **{f"pod {each['name']}": each["args"] for each in containers()}}


@pytest.mark.parametrize("where", command_lines())
def test_every_command_line_is_understood(where: str) -> None:
    understand(command_lines()[where])


def test_every_variable_is_one_that_is_read() -> None:
    """Names of ours by their settings, of Grafana's by the provisioning files, of ClickHouse's by its users."""
    services = compose()["services"]
    images = [each for each in services.values() if each["image"].startswith("mast-trace")]
    ours = [each["environment"] for each in images]
    secrets = [each["stringData"] for each in kubernetes() if each["kind"] == "Secret"]
    ours += [each for each in secrets if "keys" not in each]
    ours += [{variable["name"]: "" for variable in each.get("env", [])} for each in containers()]
    given = {name for each in ours for name in each}
    assert given <= VARIABLES | OTHERS_VARIABLES
    dockerfile = (FOLDER / "Dockerfile").read_text()
    assert set(re.findall(r"(MAST_TRACE_\w+)=", dockerfile)) <= VARIABLES
    users = (FOLDER / "clickhouse" / "users.d" / "mast-trace.xml").read_text()
    assert set(re.findall(r'from_env="(\w+)"', users)) == set(services["clickhouse"]["environment"])


def test_grafana_gets_every_variable_that_its_files_read(tmp_path: Path) -> None:
    export(tmp_path)
    texts = [path.read_text() for path in (tmp_path / "grafana" / "provisioning").rglob("*.yaml")]
    read = {name for text in texts for name in re.findall(r"\$\{?(MAST_\w+)", text)}
    grafana = compose()["services"]["grafana"]
    assert read == {name for name in grafana["environment"] if name.startswith("MAST_")}
    assert grafana["environment"]["GF_PATHS_PROVISIONING"] == "/monitoring/grafana/provisioning"
    (provider,) = yaml.safe_load(
        (tmp_path / "grafana" / "provisioning" / "dashboards" / "mast-trace.yaml").read_text()
    )["providers"]
    (mounted,) = [each for each in grafana["volumes"] if isinstance(each, dict)]
    assert mounted["target"] == provider["options"]["path"]
    assert (tmp_path / mounted["volume"]["subpath"]).is_dir()


def test_what_is_mounted_and_built_is_there() -> None:
    made_by_the_reader = {"./keys"}
    services = compose()["services"]
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
            if source.startswith("."):
                assert source in made_by_the_reader or (FOLDER / source).exists()
            else:
                assert source in compose()["volumes"]
        for name in service.get("depends_on", {}):
            assert name in services
        if "build" in service:
            context = (FOLDER / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]).exists()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (asked,) = re.findall(r"/src\[([\w,]+)\]", (FOLDER / "Dockerfile").read_text())
    assert set(asked.split(",")) <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_settings_files_hold_settings_that_fit(where: str, tmp_path: Path) -> None:
    """The settings read them; ports, grace periods and paths agree with what surrounds them."""
    if where == "compose":
        file = FOLDER / "mast-trace.toml"
        collector = compose()["services"]["collector"]
        ports = {int(port.split(":")[1]) for port in collector["ports"]}
        grace = float(collector["stop_grace_period"].rstrip("s"))
    else:
        (configured,) = [each for each in kubernetes() if each["kind"] == "ConfigMap"]
        file = tmp_path / "mast-trace.toml"
        file.write_text(configured["data"]["mast-trace.toml"])
        spec = named("collector", "StatefulSet")["spec"]["template"]["spec"]
        ports = {port["containerPort"] for port in spec["containers"][0]["ports"]}
        grace = float(spec["terminationGracePeriodSeconds"])
    assert tomllib.loads(file.read_text()).keys() <= BY_TABLE.keys()
    for settings in CLASSES:
        settings.load(file)
    config = CollectorConfig.load(file)
    assert {config.http_port, config.grpc_port} == ports
    assert config.drain_timeout_seconds < grace
    assert config.keys_file is not None


def test_pods_mount_what_they_have_and_probe_what_is_answered() -> None:
    for each in kubernetes():
        if each["kind"] not in {"StatefulSet", "Deployment"}:
            continue
        spec = each["spec"]["template"]["spec"]
        claims = each["spec"].get("volumeClaimTemplates", [])
        claimed = {claim["metadata"]["name"] for claim in claims}
        have = claimed | {volume["name"] for volume in spec["volumes"]}
        for container in spec["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= have
            names = {port["name"] for port in container.get("ports", [])}
            probes = {name: probe for name, probe in container.items() if name.endswith("Probe")}
            assert "startupProbe" in probes
            assert "memory" in container["resources"]["limits"]
            for probe in probes.values():
                if asked := probe.get("httpGet"):
                    assert asked["path"] in {"/readyz", "/healthz"}
                    assert asked["port"] in names
                else:
                    understand(probe["exec"]["command"][1:])
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert each["spec"]["selector"]["matchLabels"] == labels


def test_services_policies_and_budgets_select_pods_and_their_ports() -> None:
    pods = [each["spec"]["template"] for each in kubernetes() if has_pods(each)]
    for each in kubernetes():
        spec = each.get("spec", {})
        kind = each["kind"]
        if (
            kind not in {"Service", "NetworkPolicy", "PodDisruptionBudget"}
            or each["metadata"]["name"] == "closed"
        ):
            continue
        selected = spec.get("podSelector") or spec["selector"]
        labels = selected.get("matchLabels", selected)
        (pod,) = [each for each in pods if labels == each.get("metadata", {}).get("labels")]
        (container,) = pod["spec"]["containers"]
        rules = spec.get("ingress", [spec])
        asked = {
            port.get("targetPort", port["port"]) for rule in rules for port in rule.get("ports", [])
        }
        assert asked <= {port["name"] for port in container.get("ports", [])}
    governing = named("collector", "StatefulSet")["spec"]["serviceName"]
    assert named(governing)["spec"]["clusterIP"] == "None"
    (job,) = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert found["names"] == [f"{governing}.mast-trace.svc.cluster.local"]
    assert found["port"] == CollectorConfig.load().http_port


def test_the_containers_of_compose_are_watched_and_bounded() -> None:
    for name in ("clickhouse", "collector", "judge", "web"):
        service = compose()["services"][name]
        assert service["mem_limit"]
        kind, program, *rest = service["healthcheck"]["test"]
        assert kind == "CMD"
        if program == "mast-trace":
            understand(rest)
        elif name == "collector":
            assert f":{CollectorConfig.load().http_port}/readyz" in rest[-1]


def web_settings(**given: str) -> WebConfig:
    """The web view's settings as its service in compose gets them, for variables of the user's."""
    service = compose()["services"]["web"]
    variables = {
        name: re.sub(r"\$\{(\w+):[^}]*\}", lambda found: given.get(found[1], ""), text)
        for name, text in service["environment"].items()
        if name.startswith("MAST_TRACE_WEB")
    }
    values = {name.removeprefix("MAST_TRACE_").lower(): text for name, text in variables.items()}
    assert service["command"][1] == "--host"
    return WebConfig.load(web_host=service["command"][2], **{k: v for k, v in values.items() if v})


def test_the_web_view_lets_nobody_in_unknown() -> None:
    """With the operator's token alone, and behind the proxy whose address and header are named."""
    config = web_settings(MAST_TRACE_WEB_TOKEN="secret")
    assert not Access.of(config, None, open_beside_keys=False).is_open
    web = compose()["services"]["web"]
    assert web["ports"] == [f"127.0.0.1:{config.web_port}:{config.web_port}"]
    assert f":{config.web_port}/readyz" in web["healthcheck"]["test"][-1]
    assert web["healthcheck"]["test"][1] == "python"

    proxy = compose()["services"]["oauth2-proxy"]
    place = proxy["networks"]["default"]["ipv4_address"]
    config = web_settings(
        MAST_TRACE_WEB_TOKEN="secret",
        MAST_TRACE_WEB_PUBLIC_NAMES="traces.example.org",
        MAST_TRACE_WEB_TRUSTED_PROXIES=place,
        MAST_TRACE_WEB_USER_HEADER="X-Forwarded-Email",
    )
    text = (FOLDER / "compose.yaml").read_text()
    assert f"{place}, and X-Forwarded-Email" in text
    (network,) = compose()["networks"]["default"]["ipam"]["config"]
    assert [str(each) for each in config.trusted_proxies] == [f"{place}/32"]
    assert config.trusted_proxies[0].subnet_of(ip_network(network["subnet"]))
    assert proxy["environment"]["OAUTH2_PROXY_UPSTREAMS"] == f"http://web:{config.web_port}/"
    assert proxy["profiles"] == ["oidc"]
    assert proxy["environment"]["OAUTH2_PROXY_PASS_USER_HEADERS"] == "true"


def test_the_web_views_pod_is_reached_through_its_service() -> None:
    (pod,) = [each for each in containers() if each["name"] == "web"]
    service = named("web", "Service")
    deployment = named("web", "Deployment")
    assert service["spec"]["ports"][0]["targetPort"] == pod["ports"][0]["name"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert pod["ports"][0]["containerPort"] == WebConfig.load().web_port
    assert {"readinessProbe", "livenessProbe"} <= pod.keys()
    assert deployment["spec"]["replicas"] == 1


def test_the_example_of_a_key_has_the_form_of_one() -> None:
    keys = named("mast-trace-keys")["stringData"]["keys"]
    example, made = (re.sub(r"[0-9a-f]{64}", "", each) for each in (keys, new_key("example")[1]))
    assert example.strip() == made


def test_the_engine_has_the_servers_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded engine is the same program: it starts with the file and reports its values."""
    text = (FOLDER / "clickhouse" / "config.d" / "mast-trace.xml").read_text()
    monkeypatch.setattr(embedded, "_CONFIG", text.replace("{", "{{").replace("}", "}}"))
    with Store.open(f"chdb://{tmp_path}/data") as store:
        migrate(store)
        names = [element.tag for element in ET.fromstring(text) if not len(element)]
        rows = store.query(
            "SELECT name, value FROM system.server_settings WHERE name IN {names:Array(String)}",
            {"names": names},
        )
        merges = store.query(
            "SELECT value FROM system.merge_tree_settings WHERE name = 'merge_max_block_size_bytes'"
        )
    values = {row["name"]: row["value"] for row in rows}
    assert values["mark_cache_size"] == "268435456"
    assert values["background_pool_size"] == "4"
    assert float(values["max_server_memory_usage_to_ram_ratio"]) == pytest.approx(0.6)
    assert merges == [{"value": "8388608"}]


CLUSTER = FOLDER / "clickhouse" / "cluster"


def grants_of(user: str, *, in_cluster: bool) -> list[str]:
    """The grants of a user of the files; where a file replaces them, its own alone."""
    name = CLUSTER / "users.xml" if in_cluster else FOLDER / "clickhouse/users.d/mast-trace.xml"
    return [str(query.text) for query in ET.parse(name).findall(f"users/{user}/grants/query")]


def test_the_engine_takes_the_clusters_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what it understood of it: two shards of two replicas, and which of them it is."""
    text = (CLUSTER / "config.xml").read_text()
    known = {
        "SHARD": "2",
        "REPLICA": "clickhouse-2-1",
        "CLUSTER_SECRET": "a",
        "INTERSERVER_PASSWORD": "b",
    }
    assert set(re.findall(r'from_env="MAST_TRACE_(\w+)"', text)) == known.keys()
    for name, value in known.items():
        monkeypatch.setenv(f"MAST_TRACE_{name}", value)
    monkeypatch.setattr(embedded, "_CONFIG", text)
    with Store.open(f"chdb://{tmp_path}/data") as store:
        store.command("CREATE DATABASE mast_trace", use_database=False)
        hosts = store.query("SELECT shard_num, replica_num, host_name FROM system.clusters")
        macros = store.query("SELECT macro, substitution FROM system.macros ORDER BY macro")
        keepers = ET.fromstring(text).findall("zookeeper/node/host")
    assert [tuple(row.values()) for row in hosts] == [
        (shard, replica, f"clickhouse-{shard}-{replica}") for shard in (1, 2) for replica in (1, 2)
    ]
    assert [row["substitution"] for row in macros] == ["clickhouse-2-1", "2"]
    raft = ET.parse(CLUSTER / "keeper.xml").findall("keeper_server/raft_configuration/server")
    assert [each.findtext("hostname") for each in raft] == [each.text for each in keepers]


def do_everything(store: Store, *, in_cluster: bool) -> None:
    """Ask of the database what migrate, collect, judge, web and the commands of removal ask."""
    options = CLUSTERED if in_cluster else SchemaOptions(database=store.database)
    assert migrate(store, options)
    for statement in migrations()[-1].statements(options):  # as an older database is carried over
        store.command(statement)
    assert list(warnings_of(store)) == []
    ended = datetime.now(timezone.utc) - timedelta(hours=1)
    span = {"TraceId": "a" * 32, "SpanId": "1" * 16, "Timestamp": ended}
    store.insert("otel_traces", [span])
    with pytest.raises(PoisonError):
        SpanWriter(store, parse_from=2**60).write([b"no request"], token="t")
    worker = Worker(
        store,
        Judge(JudgeConfig.load()),
        WorkerConfig.load(run_quiet_seconds=0.001, run_idle_seconds=0.001),
    )
    assert asyncio.run(worker.drain_once()) == 1
    save_labels(store, [HumanLabel("a" * 32, "ann", outcome="failure")])
    assert store.query("SELECT Annotator FROM mast_human_labels") == [{"Annotator": "ann"}]
    erase(store, *of_runs(store, ["a" * 32]))
    assert store.query("SELECT count() AS n FROM otel_traces") == [{"n": 0}]
    thin(store, ended, 0.5)
    set_ttl(store, 30)
    shrink_to(store, 0)
    with suppress(ConfigurationError):  # an engine of before such indexes
        add_search_index(store)
    drop_search_index(store)


@pytest.mark.parametrize(
    ("lacking", "refused"),
    [
        ("", ""),
        ("CREATE", "CREATE DATABASE"),
        ("ALTER", "ALTER"),
        ("DROP", "DROP VIEW"),
        ("INSERT", "INSERT"),
        ("SHOW ACCESS", "SHOW ACCESS"),
        ("REMOTE", "Distributed"),
    ],
)
def test_the_writers_grants_are_those_that_the_parts_need(
    lacking: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine checks them at each statement; but it has no ON CLUSTER, which asks for CLUSTER."""
    act_as(grants_of("mast_trace", in_cluster=True), monkeypatch, lacking=lacking, cluster=True)
    monkeypatch.setattr(Store, "command", not_on_cluster(Store.command))
    with Store.open(f"chdb://{tmp_path}/data") as store:
        if lacking:
            with pytest.raises((StorageError, AssertionError), match=refused):
                do_everything(store, in_cluster=True)
        else:
            do_everything(store, in_cluster=True)


def test_one_servers_grants_are_those_of_a_cluster_but_for_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, cluster = (grants_of("mast_trace", in_cluster=each) for each in (False, True))
    assert cluster == [*server, "GRANT CLUSTER, REMOTE ON *.*"]
    act_as(server, monkeypatch)
    with Store.open(f"chdb://{tmp_path}/data") as store:
        do_everything(store, in_cluster=False)


def not_on_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """The store's method, without what one process has not."""

    def run(store: Store, sql: str, *more: Any, **given: Any) -> Any:
        return command(store, sql.replace("ON CLUSTER main", ""), *more, **given)

    return run


def act_as(
    grants: list[str], monkeypatch: pytest.MonkeyPatch, *, lacking: str = "", cluster: bool = False
) -> None:
    """Give the embedded engine's account these grants, but for a right; and a shard that is this process."""
    queries = ""
    for grant in grants:
        rights, on = grant.removeprefix("GRANT ").split(" ON ")
        if kept := [right for right in rights.split(", ") if right != lacking]:
            queries += f"<query>GRANT {', '.join(kept)} ON {on}</query>"
    users = f"""<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default>
        <no_password/><networks><ip>::/0</ip></networks><profile>default</profile>
        <quota>default</quota><grants>{queries}</grants></default></users></clickhouse>"""
    monkeypatch.setattr(embedded, "users_file", lambda _database: users)
    if cluster:
        servers = f"<tcp_port>9000</tcp_port><remote_servers><main>{SHARD}</main></remote_servers>"
        monkeypatch.setattr(
            embedded,
            "_CONFIG",
            embedded._CONFIG.replace("<users_config>", f"{servers}<users_config>"),
        )


def statements(name: str) -> list[str]:
    text = "\n".join(
        line
        for line in (FOLDER / "clickhouse" / name).read_text().splitlines()
        if not line.startswith("--")
    )
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def statement_of_readme(beginning: str) -> str:
    (found,) = re.findall(
        rf"^ +```sql\n +({re.escape(beginning)}.*?)^ +```$",
        (FOLDER / "README.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    return found


def test_backup_and_restore_keep_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very statements as the files' user, on the embedded engine: full, what came since, restored."""
    monkeypatch.setattr(embedded, "backups_folder", lambda _engine: tmp_path)
    # With ALTER beside them: here the same user makes the tables.
    act_as([*grants_of("backup", in_cluster=False), "GRANT ALTER ON mast_trace.*"], monkeypatch)
    label = "INSERT INTO mast_human_labels (TraceId, Annotator) VALUES ('{}', 'ann')"
    full, since, restore = (
        each.replace("File('", f"File('{tmp_path}/")
        for each in (*statements("backup.sql"), *statements("restore.sql"))
    )
    with Store.open(f"chdb://{tmp_path}/data") as store:
        migrate(store)
        store.command(label.format("first"))
        store.command("INSERT INTO otel_traces (TraceId, SpanId) VALUES ('first', 'a')")
        store.command(full)
        store.command(label.format("second"))
        store.command(since)
        store.command("DROP DATABASE mast_trace SYNC", use_database=False)
        store.command(restore, use_database=False)
        assert migrate(store) == []
        rows = store.query("SELECT TraceId FROM mast_human_labels ORDER BY TraceId")
        assert [row["TraceId"] for row in rows] == ["first", "second"]
        (run,) = store.query("SELECT TraceId, Spans FROM mast_runs")
        assert run == {"TraceId": "first", "Spans": 1}
        # A shard's backup goes into tables that are there and empty, and into no others.
        shard = statement_of_readme("RESTORE DATABASE mast_trace EXCEPT TABLES")
        shard = shard.replace("full-1", f"{tmp_path}/since").replace("_local", "")
        with pytest.raises(StorageError, match="already contains some data"):
            store.command(shard, use_database=False)
        store.command("DROP DATABASE mast_trace SYNC", use_database=False)
        migrate(store)
        store.command(shard, use_database=False)
        assert store.query("SELECT TraceId FROM mast_human_labels ORDER BY TraceId") == rows


def test_the_questions_on_sizes_are_answered(tmp_path: Path) -> None:
    rate, bytes_a_span = map(statement_of_readme, ("SELECT sum(n)", "SELECT formatReadable"))
    with Store.open(f"chdb://{tmp_path}/data") as store:
        migrate(store)
        store.command(
            "INSERT INTO otel_traces (Timestamp, TraceId, SpanId) "
            "SELECT now() - number % 120, toString(number % 9), toString(number) FROM numbers(600)"
        )
        (row,) = store.query(rate)
        assert row["spans"] == 600
        assert 600 / 3 / 60 <= row["rate"] <= 600 / 60
        (row,) = store.query(bytes_a_span)
    assert 1 < row["bytes_a_span"] < 10_000


def test_every_command_of_the_document_exists() -> None:
    text = (FOLDER / "README.md").read_text()
    for line in named_in(text):
        understand_mention(line)
    assert len(named_in(text)) > 20


def test_users_and_policies_parse_and_what_is_erased_is_filtered(tmp_path: Path) -> None:
    users = ET.parse(FOLDER / "clickhouse" / "users.d" / "mast-trace.xml")
    # In this file a grant's user is the element that it stands in.
    grants = [f"{element.text} TO somebody" for element in users.iter("query")]
    policies = statements("project-reader.sql")
    with Store.open(f"chdb://{tmp_path}/data") as store:
        migrate(store)
        for sql in [*grants, *policies]:
            store.query("SELECT formatQuery({sql:String})", {"sql": sql})
        erasable = run_tables(store)
    erased = {each.name for each in erasable}
    filtered = {table for table, rows in READABLE.items() if rows is Rows.OF_PROJECT}
    assert erased - filtered == {"otel_traces_trace_id_ts"}


@pytest.mark.parametrize("name", ["gateway", "writer"])
def test_pipelines_use_what_is_defined_and_no_more(name: str) -> None:
    config = yaml.safe_load((FOLDER / "otel" / f"{name}.yaml").read_text())
    used: dict[str, set[str]] = {"extensions": set(config["service"].get("extensions", []))}
    for pipeline in config["service"]["pipelines"].values():
        for kind, names in pipeline.items():
            used.setdefault(kind, set()).update(names)
    for kind in ("receivers", "processors", "exporters", "extensions"):
        assert set(config.get(kind, {})) == used.get(kind, set())


def test_the_two_halves_of_the_pipeline_meet_in_kafka() -> None:
    gateway, writer = (
        yaml.safe_load((FOLDER / "otel" / f"{name}.yaml").read_text())
        for name in ("gateway", "writer")
    )
    for signal in ("traces", "logs"):
        sent, taken = gateway["exporters"]["kafka"][signal], writer["receivers"]["kafka"][signal]
        assert taken == {"topics": [sent["topic"]], "encoding": sent["encoding"]}
    tables = writer["exporters"]["clickhouse"]
    assert {tables["traces_table_name"], tables["logs_table_name"]} <= OF_PROJECTS
    assert tables["create_schema"] is False
