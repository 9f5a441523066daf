"""The peers: how each predicts and learns a stream, written as its users would for the best speed.

Run by an interpreter that has them (`make bench-env`), without csdpp. A peer is a class whose constructor converts
the data, untimed, and whose `run` gives predictions for as many rows as the time allows, each made before its row
(or its batch of rows) is learned. Every peer has four settings, all of them learning rates, and brings its own
constant feature.
"""

import os
import shutil
import tempfile
import time
from importlib.metadata import version

import numpy as np
from scipy import sparse


def in_steps(step, n, batch, seconds):
    """Predictions of step(i, j) for rows i to j, and the CPU seconds, until the rows or the seconds are spent."""
    answers, done = [], 0
    start = time.process_time()
    while True:
        last = min(done + batch, n)
        answers.append(step(done, last))
        done = last
        spent = time.process_time() - start
        if done == n or spent >= seconds:
            return np.vstack(answers), spent


def dense(X, dtype):
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype)


def rates(*values):
    return [{"learning_rate": value} for value in values]


class Peer:
    package = ""
    settings = ()
    batch = 1  # rows predicted before the first of them is learned

    @classmethod
    def made_with(cls):
        return f"{cls.package} {version(cls.package)}"

    def __init__(self, X, Y, M):
        """Rows X (n, d), dense or CSR; boolean Y (n, K); M, of a hidden layer, by default K / 2 and at most 60."""
        self.X, self.Y = X, Y
        self.n, self.K = Y.shape
        self.M = M or min(-(-self.K // 2), 60)
        if self.batch > 1 and self.n < 4000:
            self.batch = max(1, self.batch // 10)  # on a short stream the first batches are a large part of it
        self.prepare()

    def prepare(self):
        """Convert the data."""

    def run(self, setting, seconds):
        """Predictions of the first rows (rows, K) and the CPU seconds that they took."""
        return in_steps(self.start(setting), self.n, self.batch, seconds)

    def start(self, setting):
        """A fresh learner, as a function step(i, j) -> predictions."""
        raise NotImplementedError


# ---- Vowpal Wabbit: its own driver on its own binary cache; it predicts each row before learning it


class VowpalWabbit(Peer):
    package = "vowpalwabbit"
    options = ""
    settings = rates(0.1, 0.5, 2.0, 10.0)

    def prepare(self):
        self.folder = tempfile.mkdtemp()
        X = sparse.csr_array(self.X)
        self.lines = []
        for i in range(self.n):
            part = slice(X.indptr[i], X.indptr[i + 1])
            features = " ".join(f"{j}:{v:.7g}" for j, v in zip(X.indices[part], X.data[part], strict=True))
            self.lines.append(f"{','.join(map(str, np.flatnonzero(self.Y[i])))} | {features}\n")
        # A weight for every pair of feature and label: collisions would cost accuracy.
        self.bits = min(26, max(18, int(np.ceil(np.log2((X.shape[1] + 1) * self.K * 1.5)))))

    def run(self, setting, seconds):
        rows = min(self.n, 50)
        while True:
            answers, spent = self._drive(setting, rows)
            if rows == self.n or spent >= 0.5 * seconds:
                return answers, spent
            rows = min(self.n, max(rows + 1, int(0.8 * rows * seconds / max(spent, 1e-3))))

    def _drive(self, setting, rows):
        from vowpalwabbit import Workspace

        data, cache, out = (os.path.join(self.folder, name) for name in ("data", f"cache{rows}", "out"))
        common = f"{self.options.format(K=self.K)} -b {self.bits} --cache_file {cache} --quiet"
        if not os.path.exists(cache):
            with open(data, "w", encoding="ascii") as file:
                file.writelines(self.lines[:rows])
            workspace = Workspace(f"{common} -d {data}")
            workspace.run_parser()
            workspace.finish()
        workspace = Workspace(f"{common} -l {setting['learning_rate']} -p {out}")
        start = time.process_time()
        workspace.run_parser()
        spent = time.process_time() - start
        workspace.finish()
        answers = np.zeros((rows, self.K), np.bool_)
        with open(out, encoding="ascii") as file:
            for answer, line in zip(answers, file, strict=True):
                answer[[int(label) for label in line.strip().split(",") if label]] = True
        return answers, spent


class VowpalWabbitOAA(VowpalWabbit):
    options = "--multilabel_oaa {K}"


class VowpalWabbitPLT(VowpalWabbit):
    settings = rates(0.5, 2.0, 8.0, 32.0)
    options = "--plt {K} --loss_function logistic"


# ---- PyTorch: one forward pass serves prediction and learning


class Torch(Peer):
    package = "torch"

    def prepare(self):
        import torch

        torch.set_num_threads(1)
        self.features = torch.from_numpy(dense(self.X, np.float32))
        self.truth = torch.from_numpy(self.Y.astype(np.float32))

    def start(self, setting):
        import torch

        torch.manual_seed(0)
        network = self.network(torch.nn, self.X.shape[1])
        optimizer = self.optimizer(torch.optim, network.parameters(), setting["learning_rate"])
        loss = torch.nn.BCEWithLogitsLoss(reduction="sum")

        def step(i, j):
            scores = network(self.features[i:j])
            optimizer.zero_grad(set_to_none=True)
            (loss(scores, self.truth[i:j]) / (j - i)).backward()
            optimizer.step()
            return scores.detach().numpy() >= 0.0

        return step

    def network(self, nn, d):
        return nn.Linear(d, self.K)

    def optimizer(self, optim, parameters, rate):
        return optim.Adam(parameters, lr=rate, fused=True)


class TorchLinearSGD(Torch):
    settings = rates(0.03, 0.1, 0.3, 1.0)

    def optimizer(self, optim, parameters, rate):
        return optim.SGD(parameters, lr=rate)


class TorchLinearAdam(Torch):
    settings = rates(0.003, 0.01, 0.03, 0.1)


class TorchLowRank(Torch):
    settings = rates(0.003, 0.01, 0.03, 0.1)

    def network(self, nn, d):
        return nn.Sequential(nn.Linear(d, self.M), nn.Linear(self.M, self.K))


class TorchLowRankBatch(TorchLowRank):
    batch = 100


# ---- river: dicts, made beforehand


class River(Peer):
    package = "river"
    settings = rates(0.001, 0.003, 0.01, 0.1)

    def prepare(self):
        if sparse.issparse(self.X):
            cuts = zip(self.X.indptr[:-1], self.X.indptr[1:], strict=True)
            X = self.X
            self.features = [dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in cuts]
        else:
            self.features = [dict(enumerate(x.tolist())) for x in self.X]
        self.truth = [{f"y{k}": bool(value) for k, value in enumerate(y)} for y in self.Y]

    def start(self, setting):
        from river import linear_model, multioutput, optim, preprocessing

        one = linear_model.LogisticRegression(optim.SGD(setting["learning_rate"]))
        model = self.join(multioutput, one)
        if not sparse.issparse(self.X):  # a sparse row's features are those that are not 0: centring means nothing
            model = preprocessing.StandardScaler() | model
        names = [f"y{k}" for k in range(self.K)]

        def step(i, j):
            answer = model.predict_one(self.features[i])
            model.learn_one(self.features[i], self.truth[i])
            return np.array([[bool(answer.get(name, False)) for name in names]])

        return step


class RiverPerOutput(River):
    def join(self, multioutput, one):
        return multioutput.PerOutputClassifier(one)


class RiverChain(River):
    def join(self, multioutput, one):
        return multioutput.ClassifierChain(one)


# ---- scikit-learn and napkinXC: batches


class SklearnSGD(Peer):
    package = "scikit-learn"
    batch = 100
    settings = rates(0.03, 0.1, 0.5, 2.0)

    def start(self, setting):
        from sklearn.linear_model import SGDClassifier
        from sklearn.multioutput import MultiOutputClassifier

        one = SGDClassifier(
            loss="log_loss", learning_rate="constant", eta0=setting["learning_rate"], alpha=1e-6, random_state=0
        )
        model = MultiOutputClassifier(one)
        classes = [np.array([0, 1])] * self.K
        truth = self.Y.astype(np.int64)

        def step(i, j):
            answer = model.predict(self.X[i:j]) if i else np.zeros((j, self.K))
            model.partial_fit(self.X[i:j], truth[i:j], classes=classes)
            return answer > 0

        return step


class NapkinXC(Peer):
    """Online probabilistic label tree. Its Python package resumes from files only: their writing is timed too."""

    package = "napkinxc"
    batch = 100
    settings = rates(0.3, 1.0, 3.0, 10.0)

    def prepare(self):
        self.folder = tempfile.mkdtemp()
        # Its model would break on a feature beyond the first batch: the last one is always there, and as good as 0.
        self.features = sparse.csr_matrix(sparse.hstack([sparse.csr_matrix(self.X), np.full((self.n, 1), 1e-30)]))
        self.truth = [np.flatnonzero(y).tolist() for y in self.Y]

    def start(self, setting):
        from napkinxc.models import Model

        shutil.rmtree(self.folder)
        model = Model(
            output=self.folder,
            model="oplt",
            tree_type="onlineBestScore",
            optimizer="adagrad",
            eta=setting["learning_rate"],
            epochs=1,
            weights_threshold=0.0,
            load_as="dense",
            threads=1,
            seed=0,
            verbose=0,
            save_grads=True,
        )

        def step(i, j):
            labels = model.predict(self.features[i:j], threshold=0.5) if i else [[]] * j
            model.set_params(resume=bool(i))
            model.fit(self.features[i:j], self.truth[i:j])
            model.load()
            answer = np.zeros((j - i, self.K), np.bool_)
            for row, found in zip(answer, labels, strict=True):
                row[list(found)] = True
            return answer

        return step


#: Names as `csdpp bench` shows them.
LEARNERS = {
    "Vowpal Wabbit multilabel_oaa": VowpalWabbitOAA,
    "Vowpal Wabbit plt": VowpalWabbitPLT,
    "PyTorch linear, SGD": TorchLinearSGD,
    "PyTorch linear, Adam": TorchLinearAdam,
    "PyTorch low-rank, Adam": TorchLowRank,
    "PyTorch low-rank, Adam, batches": TorchLowRankBatch,
    "river PerOutputClassifier": RiverPerOutput,
    "river ClassifierChain": RiverChain,
    "scikit-learn MultiOutput SGD, batches": SklearnSGD,
    "napkinXC online PLT, batches": NapkinXC,
}
