"""Small networks written out, as short as they can be: families that no library of models has. `NETWORKS` has a
function for each, which returns the module and what makes the sample of an index."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from models.zoo_transformers import numbers, picture, smooth, tokens


class Recurrent(nn.Module):
    """Embedding, two recurrent layers in both directions, mean over time."""

    def __init__(self, kind, **options):
        super().__init__()
        options = dict(num_layers=2, batch_first=True, bidirectional=True) | options
        self.embedding = nn.Embedding(1000, 128)
        self.layers = getattr(nn, kind)(128, 256, **options)
        width = options.get("proj_size") or 256
        self.head = nn.Linear(width * (2 if options["bidirectional"] else 1), 10)

    def forward(self, ids):
        return self.head(self.layers(self.embedding(ids))[0].mean(1))


class Streaming(nn.Module):
    """A step of a recognizer that hands its state to the next: several inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.front = nn.Linear(80, 128)
        self.layers = nn.LSTM(128, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 40)

    def forward(self, frames, h, c):
        y, (h, c) = self.layers(F.relu(self.front(frames)), (h, c))
        return F.log_softmax(self.head(y), -1), h, c


class GroupNormUnet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())

        self.down = nn.ModuleList([block(3, 32), block(32, 64), block(64, 128)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)])
        self.join = nn.ModuleList([block(128, 64), block(64, 32)])
        self.head = nn.Conv2d(32, 4, 1)

    def forward(self, x):
        fine = self.down[0](x)
        middle = self.down[1](F.max_pool2d(fine, 2))
        y = self.join[0](torch.cat([self.up[0](self.down[2](F.max_pool2d(middle, 2))), middle], 1))
        return self.head(self.join[1](torch.cat([self.up[1](y), fine], 1)))


class VolumeUnet(nn.Module):
    """A U-Net of medical volumes."""

    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(nn.Conv3d(inputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs, affine=True),
                                 nn.LeakyReLU(0.01))  # fmt: skip

        self.first, self.deep, self.last = block(1, 16), block(16, 32), block(32, 16)
        self.up = nn.ConvTranspose3d(32, 16, 2, 2)
        self.head = nn.Conv3d(16, 3, 1)

    def forward(self, x):
        fine = self.first(x)
        y = self.up(self.deep(F.max_pool3d(fine, 2)))
        return self.head(self.last(torch.cat([y, fine], 1)))


class ConvTasNet(nn.Module):
    """Separates a sound into two speakers: learned filters, dilated depthwise convolutions, masks."""

    def __init__(self, filters=64, width=128):
        super().__init__()
        self.encode = nn.Conv1d(1, filters, 16, 8, bias=False)
        self.norm, self.narrow = nn.GroupNorm(1, filters), nn.Conv1d(filters, filters, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(filters, width, 1), nn.PReLU(), nn.GroupNorm(1, width),
                          nn.Conv1d(width, width, 3, padding=2**d, dilation=2**d, groups=width), nn.PReLU(),
                          nn.GroupNorm(1, width), nn.Conv1d(width, filters, 1))
            for d in range(5)
        )  # fmt: skip
        self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(filters, 2 * filters, 1), nn.Sigmoid())
        self.decode = nn.ConvTranspose1d(filters, 1, 16, 8, bias=False)

    def forward(self, sound):
        code = self.encode(sound)
        y = self.narrow(self.norm(code))
        for block in self.blocks:
            y = y + block(y)
        masks = self.mask(y).chunk(2, 1)
        return torch.cat([self.decode(code * mask) for mask in masks], 1)


class WaveNet(nn.Module):
    """Causal dilated convolutions with gates and skips."""

    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**d) for d in range(7))
        self.outs = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(7))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, sound):
        y, skips = self.first(sound), 0
        for depth, (gate, out) in enumerate(zip(self.gates, self.outs)):
            a, b = gate(F.pad(y, (2**depth, 0))).chunk(2, 1)
            residual, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            y, skips = y + residual, skips + skip
        return self.head(skips)


class Crnn(nn.Module):
    """Reads a line of text: convolutions, recurrent layers over columns."""

    def __init__(self):
        super().__init__()

        def block(inputs, outputs, pool):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                                 nn.MaxPool2d(pool))  # fmt: skip

        self.layers = nn.Sequential(block(3, 32, 2), block(32, 64, 2), block(64, 128, (2, 1)), block(128, 128, (2, 1)))
        self.recurrent = nn.GRU(128 * 2, 128, bidirectional=True)
        self.head = nn.Linear(256, 37)

    def forward(self, x):
        y = self.layers(x[:, :, :32]).flatten(1, 2).permute(2, 0, 1)
        return F.log_softmax(self.head(self.recurrent(y)[0]), 2)


class SpatialTransformer(nn.Module):
    """Finds an affine map, and samples the image by it."""

    def __init__(self):
        super().__init__()
        self.find = nn.Sequential(nn.Conv2d(3, 8, 7, 2), nn.ReLU(), nn.MaxPool2d(7), nn.Flatten(),
                                  nn.Linear(128, 6))  # fmt: skip
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(),
                                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))  # fmt: skip

    def forward(self, x):
        eye = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        theta = (0.2 * self.find(x) + eye).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        return self.layers(F.grid_sample(x, grid, align_corners=False))


class PointNet(nn.Module):
    """A cloud of points, in any order."""

    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.AdaptiveMaxPool1d(1),
                                  nn.Flatten(), nn.Linear(64, 9))  # fmt: skip
        self.layers = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 256, 1),
                                    nn.BatchNorm1d(256), nn.ReLU())  # fmt: skip
        self.head = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 40))

    def forward(self, points):
        turned = torch.bmm(points.transpose(1, 2), self.turn(points).view(-1, 3, 3) + torch.eye(3)).transpose(1, 2)
        return self.head(self.layers(turned).amax(2))


class Recommender(nn.Module):
    """Numbers and categories: embeddings, products of all pairs."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(100, 16) for _ in range(8))
        self.low = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
        self.high = nn.Sequential(nn.Linear(16 + 36, 64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, dense, categories):
        low = self.low(dense)
        rows = torch.stack([low] + [table(categories[:, i]) for i, table in enumerate(self.tables)], 1)
        first, second = torch.tril_indices(9, 9, -1).unbind()
        pairs = torch.bmm(rows, rows.transpose(1, 2))[:, first, second]
        return self.high(torch.cat([low, pairs], 1))


class Seq2Seq(nn.Module):
    """PyTorch's own Transformer, with a causal mask."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 128)
        self.layers = nn.Transformer(128, 4, 2, 2, 512, batch_first=True, norm_first=True)
        self.head = nn.Linear(128, 1000)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(16)
        return self.head(self.layers(self.embedding(source), self.embedding(target), tgt_mask=mask))


def generator():
    layers = [nn.ConvTranspose2d(64, 128, 4, 1, 0, bias=False), nn.BatchNorm2d(128), nn.ReLU()]
    for inputs, outputs in ((128, 64), (64, 32), (32, 16)):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())


def super_resolution():
    return nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, 12, 3, padding=1), nn.PixelShuffle(2))  # fmt: skip


def perceptron():
    return nn.Sequential(nn.Linear(30, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(), nn.Linear(256, 256),
                         nn.BatchNorm1d(256), nn.ELU(), nn.Linear(256, 2), nn.Softmax(1))  # fmt: skip


def ids(index):
    return {"ids": tokens(index, 64)}


def image(side):
    return lambda index: {"input": picture(index, side)}


def state(index):
    return {"frames": smooth(index, 1, 80, 8).transpose(1, 2), "h": numbers(index, 2, 1, 128).tanh(),
            "c": numbers(index + 50, 2, 1, 128)}  # fmt: skip


NETWORKS = {
    "text_lstm": lambda: (Recurrent("LSTM"), ids),
    "text_gru": lambda: (Recurrent("GRU"), ids),
    "text_rnn": lambda: (Recurrent("RNN"), ids),
    "text_lstm_forward": lambda: (Recurrent("LSTM", bidirectional=False), ids),
    "text_gru_forward": lambda: (Recurrent("GRU", bidirectional=False, num_layers=1), ids),
    "text_rnn_relu": lambda: (Recurrent("RNN", nonlinearity="relu", bias=False), ids),
    "streaming_lstm": lambda: (Streaming(), state),
    "unet_groupnorm": lambda: (GroupNormUnet(), image(128)),
    "unet_3d": lambda: (VolumeUnet(), lambda i: {"input": smooth(i, 1, 1, 16, 32, 32)}),
    "conv_tasnet": lambda: (ConvTasNet(), lambda i: {"sound": smooth(i, 1, 1, 4000)}),
    "wavenet": lambda: (WaveNet(), lambda i: {"sound": smooth(i, 1, 1, 1000)}),
    "crnn": lambda: (Crnn(), image(96)),
    "spatial_transformer": lambda: (SpatialTransformer(), image(64)),
    "pointnet": lambda: (PointNet(), lambda i: {"points": numbers(i, 1, 3, 256)}),
    "recommender": lambda: (
        Recommender(), lambda i: {"dense": numbers(i, 1, 13), "categories": tokens(i, 8) % 100}
    ),
    "torch_transformer": lambda: (
        Seq2Seq(), lambda i: {"source": tokens(i, 32), "target": tokens(i + 99, 16)}
    ),
    "dcgan": lambda: (generator(), lambda i: {"noise": numbers(i, 1, 64, 1, 1)}),
    "espcn": lambda: (super_resolution(), image(64)),
    "perceptron": lambda: (perceptron(), lambda i: {"rows": numbers(i, 4, 30)}),
}  # fmt: skip
