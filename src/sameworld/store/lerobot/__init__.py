"""LeRobot datasets, read and written by their format: no LeRobot is needed."""

from sameworld.store.lerobot.info import LerobotFeature, LerobotInfo, lerobot_info
from sameworld.store.lerobot.loss import ChannelLoss, LossReport
from sameworld.store.lerobot.read import read_lerobot
from sameworld.store.lerobot.write import slowest_rate, write_lerobot

__all__ = [
    "ChannelLoss",
    "LerobotFeature",
    "LerobotInfo",
    "LossReport",
    "lerobot_info",
    "read_lerobot",
    "slowest_rate",
    "write_lerobot",
]
