"""For training scripts: save in time, resume from what is whole, and say how far one is.

    from shoal.train import Training

    def save(folder): torch.save(model.state_dict(), folder / "model.pt")
    def load(folder): model.load_state_dict(torch.load(folder / "model.pt"))

    with Training("/checkpoints", save=save, load=load, every_s=600, keep=3) as training:
        for step in training.steps(100_000):
            train_on(batches[step])

A script that receives SIGTERM, which Kubernetes sends before it kills, saves once more and exits; after a restart it
continues from the newest complete checkpoint. The scheduler learns when work was saved last, and prefers to preempt
the pods that lose least.

Needs nothing but Python: no other part of Shoal, no torch unless the script has imported it.
"""

from shoal.train.checkpoints import Checkpoint, Checkpoints
from shoal.train.progress import Progress, Reporter, reporter_of
from shoal.train.training import Training

__all__ = ["Checkpoint", "Checkpoints", "Progress", "Reporter", "Training", "reporter_of"]
