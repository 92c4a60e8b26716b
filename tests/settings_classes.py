"""The classes of all settings, by the table that holds them in a file."""

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.settings import ProcessSettings
from mast_trace_dashboards.alerts.config import AlertConfig
from mast_trace_dashboards.local.announcement import UpConfig
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.pricing import PriceConfig

CLASSES: tuple[type[ProcessSettings], ...] = (
    *(CollectorConfig, JudgeConfig, WorkerConfig, PriceConfig),
    *(AlertConfig, UpConfig, WebConfig),
)
BY_TABLE = {each.table: each for each in CLASSES}
