"""A real double pendulum, fitted by exact derivatives of its equations of motion.

Four swings are bundled (K. Kaheman et al., arXiv 2205.06231; MIT, see double_pendulum.LICENSE):
absolute angles in rad at 250 Hz, 0 is upright. Three are fitted, one is predicted. Motion tells
inertias up to one scale, so that both masses and one centre of mass are held at round numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sameworld as sw

STEP, WARMUP = 0.004, 12
PUBLISHED = {"M12/M11": 0.49135, "G1/M11": 58.962}  # couplings by inertia and gravity [-, 1/s^2]
MJCF = """<mujoco><option timestep="0.001" integrator="implicitfast"/>
  <custom><numeric name="control_period" data="0.004"/></custom>
  <worldbody><body name="upper"><joint name="j1" axis="0 1 0" damping="1e-4"/>
    <inertial mass="0.1" pos="0 0 0.08" diaginertia="4e-3 5e-4 4e-3"/>
    <body name="lower" pos="0 0 0.17"><joint name="j2" axis="0 1 0" damping="1e-4"/>
      <inertial mass="0.1" pos="0 0 0.1" diaginertia="4e-3 5e-4 4e-3"/></body></body>
  </worldbody></mujoco>"""
FREE = (
    sw.Parameter(name="body:upper.inertia.y", value=5e-4, low=1e-6, high=8e-3, transform="log"),
    sw.Parameter(name="body:lower.inertia.y", value=5e-4, low=1e-6, high=8e-3, transform="log"),
    sw.Parameter(name="body:upper.com.z", value=0.08, low=-0.3, high=0.4),
    sw.Parameter(name="joint:j1.damping", value=1e-4, low=1e-8, high=0.1, transform="log"),
    sw.Parameter(name="joint:j2.damping", value=1e-4, low=1e-8, high=0.1, transform="log"),
    sw.Parameter(name="option:gravity.z", value=-9.81, low=-11.5, high=-8.0),
)
NAMES = tuple(p.name for p in FREE)


def swings() -> list[sw.Episode]:
    """The recordings as angles of the joints."""
    found: list[sw.Episode] = []
    with np.load(Path(__file__).with_name("double_pendulum.npz")) as runs:
        for name in sorted(runs):
            angles = np.diff(runs[name].astype(np.float64), axis=1, prepend=0.0)
            time, columns = STEP * np.arange(len(angles)), {"j1.pos": 0, "j2.pos": 1}
            pair = [sw.Channel(name=n, time=time, values=angles[:, k]) for n, k in columns.items()]
            found.append(sw.Episode(id=name, channels=tuple(pair)))
    return found


def run() -> tuple[dict[str, float], sw.Prediction, float]:
    """Fitted ratios, the unseen swing predicted, and how far derivatives are from differences."""
    *known, unseen = swings()
    scene = sw.Scene(name="double", mjcf=MJCF, belief=sw.Belief(parameters=FREE))
    config = sw.IdentifyConfig(
        free=NAMES, warmup=WARMUP, window=0.6, starts="joint", search="none", holdout=0.0
    )
    fitted, _, result = sw.identify(sw.build(scene, "differentiable"), known, config=config)
    assert result.derivatives == "exact"
    seen, wrt = sw.predict(fitted, unseen, WARMUP), ("body:upper.com.z", "start:j2.vel")
    exact, close = (
        sw.jacobian(fitted, seen.start, np.zeros((1, 100, 0)), wrt=wrt, method=m).derivatives
        for m in ("gradient", "differences")
    )
    apart = max(np.abs(exact[n] - close[n]).max() / np.abs(exact[n]).max() for n in exact)
    upper, _, centre, _, _, gravity = (result.verdict(name).value for name in NAMES)
    first, reach = upper + 0.1 * (centre**2 + 0.17**2), -gravity * 0.1 * (centre + 0.17)
    found = {"M12/M11": 0.1 * 0.17 * 0.1 / first, "G1/M11": reach / first}
    return found, seen, float(apart)


def check() -> None:
    """Ratios as published, an unseen second to half a degree, derivatives as differences."""
    found, seen, apart = run()
    errors = np.rad2deg([seen.channels[f"j{k}.pos"].error[:250] for k in (1, 2)])
    assert np.sqrt(np.mean(errors**2)) < 0.5 and apart < 1e-5, f"{errors}, {apart}"
    for name, value in found.items():
        assert abs(value / PUBLISHED[name] - 1) < 0.02, f"{name}: {value}"


if __name__ == "__main__":
    ratios, _, difference = run()
    print(f"fitted {ratios}, published {PUBLISHED}, derivatives apart {difference:.1e}")
