"""Networks of Keras and TensorFlow as tf2onnx writes them: channels last, transposed where ONNX wants channels first.

`NAMES` are those that benchmarks/zoo.py checks, and `make(name, path)` writes any builder's network with seeded random
weights, in an interpreter of its own that has TensorFlow (`benchmarks/peers/make-venv --keras`, or what the variable
QTENSOR_KERAS_PYTHON names). A name may end in
`_opset13`, in `_batch` (the batch is open), in `_raw` (tf2onnx's optimizer is left out, so that its Transposes stay),
in `_lite` or in `_lite8` (by way of TensorFlow Lite, in floats, or in int8 with its grids), in this order.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np

SEED = 0
SETTLED = 4  # samples that statistics of normalizations come from
RESIDUAL_SCALE = 0.3
OPSET = 17
APPLICATIONS = {  # builder of keras.applications: side of its images
    "mobilenet": ("MobileNet", 96), "mobilenet_v2": ("MobileNetV2", 96), "mobilenet_v3": ("MobileNetV3Small", 96),
    "efficientnet": ("EfficientNetB0", 96), "efficientnet_v2": ("EfficientNetV2B0", 96),
    "resnet_v2": ("ResNet50V2", 96), "densenet": ("DenseNet121", 96), "nasnet": ("NASNetMobile", 96),
    "xception": ("Xception", 128), "inception": ("InceptionV3", 128), "convnext": ("ConvNeXtTiny", 96),
    "resnet": ("ResNet50", 96),
}  # fmt: skip
WORDS = 500


def image(side, channels=3):
    """A function that makes the picture of an index: noise of several octaves."""

    def sample(index):
        rng = np.random.default_rng(index)
        picture = np.zeros((side, side, channels))
        for octave in range(5):
            noise = rng.standard_normal((4 << octave, 4 << octave, channels))
            places = np.arange(side) * len(noise) // side
            picture += noise[places][:, places] / 2**octave
        return (picture / picture.std()).astype(np.float32)[None]

    return sample


def wave(length, channels=1):
    def sample(index):
        white = np.fft.rfft(np.random.default_rng(index).standard_normal((length, channels)), axis=0)
        made = np.fft.irfft(white / np.arange(1, len(white) + 1)[:, None] ** 0.5, n=length, axis=0)
        return (made / made.std()).astype(np.float32)[None]

    return sample


def numbers(*shape):
    return lambda index: np.random.default_rng(index).standard_normal((1, *shape)).astype(np.float32)


def words(length):
    return lambda index: np.random.default_rng(index).integers(1, WORDS, (1, length)).astype(np.int32)


def application(name):
    builder, side = APPLICATIONS[name]

    def build(keras):
        options = {"include_preprocessing": False} if name in ("mobilenet_v3", "efficientnet_v2", "convnext") else {}
        make = getattr(keras.applications, builder)
        return make(weights=None, input_shape=(side, side, 3), classes=100, classifier_activation=None, **options)

    return build, image(side)


def sequential(shape, layers, dtype="float32"):
    """A builder: `layers(keras.layers, keras)` lists what one input of this shape goes through."""

    def build(keras):
        x = start = keras.Input(shape, dtype=dtype)
        for layer in layers(keras.layers, keras):
            x = layer(x)
        return keras.Model(start, x)

    return build


def vgg(L, keras):
    for width in (32, 64, 128):
        for _ in range(2):
            yield L.Conv2D(width, 3, padding="same", activation="relu")
        yield L.MaxPooling2D()
    yield from (L.Flatten(), L.Dense(256, activation="relu"), L.Dropout(0.5), L.Dense(10, activation="softmax"))


def audio(L, keras):
    """One-dimensional convolutions, which tf2onnx gives a second axis and takes it away again."""
    for width, stride in ((32, 4), (64, 2), (128, 2)):
        yield from (L.Conv1D(width, 9, stride, padding="same", use_bias=False), L.BatchNormalization(), L.ReLU())
        yield from (L.SeparableConv1D(width, 5, padding="same"), L.BatchNormalization(), L.Activation("swish"))
        yield L.MaxPooling1D()
    yield from (L.GlobalAveragePooling1D(), L.Dense(35))


def wavenet(keras):
    L = keras.layers
    x = start = keras.Input((512, 1))
    x = L.Conv1D(32, 2, padding="causal")(x)
    for dilation in (1, 2, 4, 8, 16):
        gate = L.Conv1D(32, 2, padding="causal", dilation_rate=dilation, activation="sigmoid")(x)
        y = L.Conv1D(32, 2, padding="causal", dilation_rate=dilation, activation="tanh")(x)
        x = L.Add()([x, L.Conv1D(32, 1)(L.Multiply()([y, gate]))])
    return keras.Model(start, L.Conv1D(64, 1)(L.ReLU()(x)))


def volume(L, keras):
    for width in (16, 32, 64):
        yield from (L.Conv3D(width, 3, padding="same"), L.BatchNormalization(), L.ReLU(), L.MaxPooling3D())
    yield from (L.GlobalAveragePooling3D(), L.Dense(10))


def separable(L, keras):
    """Activations as users write them, and depthwise convolutions that make more channels than they read."""
    import tensorflow as tf

    yield from (L.Conv2D(24, 3, 2, padding="same"), L.BatchNormalization(), L.ReLU(6.0))
    yield from (L.DepthwiseConv2D(3, depth_multiplier=2, padding="same"), L.BatchNormalization(), L.LeakyReLU(0.1))
    yield from (L.SeparableConv2D(64, 3, padding="same"), L.BatchNormalization(), L.Lambda(lambda x: x * tf.nn.relu6(x + 3) / 6))
    yield from (L.SeparableConv2D(64, 3, 2), L.BatchNormalization(), L.PReLU(shared_axes=[1, 2]))
    yield from (L.SeparableConv2D(96, 5, padding="same"), L.Lambda(lambda x: x * (1 / 6) * tf.minimum(tf.maximum(x + 3, 0), 6)))
    yield from (L.DepthwiseConv2D(3, 2, padding="same"), L.ELU(), L.Conv2D(64, 1), L.Lambda(lambda x: tf.clip_by_value(x, -1, 1)))
    yield from (L.AveragePooling2D(padding="same"), L.Lambda(lambda x: tf.reduce_mean(x, [1, 2], keepdims=True)))
    yield from (L.Conv2D(10, 1), L.Reshape((10,)))


def unet(keras):
    L = keras.layers

    def block(x, width):
        for _ in range(2):
            x = L.ReLU()(L.BatchNormalization()(L.Conv2D(width, 3, padding="same", use_bias=False)(x)))
        return x

    start = keras.Input((64, 64, 3))
    fine = block(start, 16)
    middle = block(L.MaxPooling2D()(fine), 32)
    coarse = block(L.MaxPooling2D()(middle), 64)
    deep = block(L.MaxPooling2D()(coarse), 96)
    x = block(L.Concatenate()([L.Conv2DTranspose(64, 2, 2, padding="same")(deep), coarse]), 64)
    x = block(L.Concatenate()([L.UpSampling2D(interpolation="bilinear")(x), middle]), 32)
    x = block(L.Concatenate()([L.UpSampling2D()(x), fine]), 16)
    x = L.Conv2DTranspose(8, 3, padding="same", activation="relu")(x)
    return keras.Model(start, L.Conv2D(4, 1)(x))


def deeplab(keras):
    import tensorflow as tf

    L = keras.layers

    def block(x, width, size, **options):
        return L.ReLU()(L.BatchNormalization()(L.Conv2D(width, size, padding="same", use_bias=False, **options)(x)))

    start = keras.Input((128, 128, 3))
    x = low = block(block(start, 16, 3, strides=2), 24, 3, strides=2)
    x = block(block(x, 48, 3, strides=2), 64, 3, dilation_rate=2)
    wide = [block(x, 32, 1)] + [block(x, 32, 3, dilation_rate=rate) for rate in (2, 4, 6)]
    pooled = block(tf.reduce_mean(x, [1, 2], keepdims=True), 32, 1)
    wide.append(tf.image.resize(pooled, (16, 16)))
    x = tf.image.resize(block(L.Concatenate()(wide), 48, 1), (32, 32))
    x = block(L.Concatenate()([x, block(low, 12, 1)]), 48, 3)
    return keras.Model(start, tf.image.resize(L.Conv2D(8, 1)(x), (128, 128)))


def super_resolution(keras):
    import tensorflow as tf

    L = keras.layers
    start = keras.Input((48, 48, 3))
    x = first = L.Conv2D(48, 3, padding="same", activation="relu")(tf.nn.space_to_depth(start, 2))
    for _ in range(3):
        x = x + 0.2 * L.Conv2D(48, 3, padding="same")(L.Conv2D(48, 3, padding="same", activation="relu")(x))
    x = tf.nn.depth_to_space(L.Conv2D(48, 3, padding="same")(x + first), 4)
    return keras.Model(start, x + tf.image.resize(start, (96, 96), "bicubic"))


def attention_block(keras, x, width, heads=4):
    L = keras.layers
    y = L.LayerNormalization(epsilon=1e-6)(x)
    x = L.Add()([x, L.MultiHeadAttention(heads, width // heads)(y, y)])
    y = L.LayerNormalization(epsilon=1e-6)(x)
    return L.Add()([x, L.Dense(width)(L.Dense(4 * width, activation="gelu")(y))])


def transformer(keras):
    import tensorflow as tf

    L = keras.layers
    ids = keras.Input((32,), dtype="int32")
    x = L.Embedding(WORDS, 96)(ids) + L.Embedding(32, 96)(tf.range(32))
    for _ in range(2):
        x = attention_block(keras, x, 96)
    return keras.Model(ids, L.Dense(10)(L.GlobalAveragePooling1D()(L.LayerNormalization()(x))))


def vision_transformer(keras):
    L = keras.layers
    start = keras.Input((64, 64, 3))
    x = L.Reshape((64, 96))(L.Conv2D(96, 8, 8)(start))
    for _ in range(2):
        x = attention_block(keras, x, 96)
    return keras.Model(start, L.Dense(10)(L.Lambda(lambda x: x[:, 0])(L.LayerNormalization()(x))))


def mixer(keras):
    L = keras.layers
    start = keras.Input((64, 64, 3))
    x = L.Reshape((64, 96))(L.Conv2D(96, 8, 8)(start))
    for _ in range(3):
        y = L.Permute((2, 1))(L.LayerNormalization()(x))
        x = L.Add()([x, L.Permute((2, 1))(L.Dense(64)(L.Dense(128, activation="gelu")(y)))])
        x = L.Add()([x, L.Dense(96)(L.Dense(192, activation="gelu")(L.LayerNormalization()(x)))])
    return keras.Model(start, L.Dense(10)(L.GlobalAveragePooling1D()(x)))


def excitation(keras):
    """Squeeze and excitation, by Dense layers as people write them, and normalizations by groups."""
    L = keras.layers
    x = start = keras.Input((64, 64, 3))
    for width in (32, 64, 96):
        x = L.Activation("swish")(L.GroupNormalization(8)(L.Conv2D(width, 3, 2, padding="same")(x)))
        gate = L.Dense(width // 4, activation="relu")(L.GlobalAveragePooling2D()(x))
        gate = L.Reshape((1, 1, width))(L.Dense(width, activation="hard_sigmoid")(gate))
        x = L.Multiply()([x, gate])
    return keras.Model(start, L.Dense(10)(L.GlobalMaxPooling2D()(x)))


def preprocessed(L, keras):
    """Bytes come in; what normalizes them stands in the network."""
    yield from (L.Rescaling(1 / 127.5, -1), L.Normalization(mean=[0.1, 0.2, 0.3], variance=[0.5, 0.6, 0.7]))
    yield from (L.ZeroPadding2D(((0, 1), (0, 1))), L.Conv2D(32, 3, 2, use_bias=False), L.BatchNormalization(), L.ReLU(6.0))
    yield from (L.ZeroPadding2D(), L.DepthwiseConv2D(3), L.BatchNormalization(), L.ReLU(6.0), L.Cropping2D(1))
    yield from (L.Conv2D(64, 1), L.BatchNormalization(), L.ReLU(), L.GlobalAveragePooling2D(keepdims=True))
    yield from (L.Conv2D(10, 1), L.Flatten(), L.Softmax())


def normalized_first(L, keras):
    """Normalizations before convolutions, behind activations and behind Dense layers."""
    yield from (L.BatchNormalization(), L.Conv2D(32, 3, padding="same", activation="relu"), L.BatchNormalization())
    yield from (L.MaxPooling2D(), L.Conv2D(64, 3, padding="same", activation="relu"), L.BatchNormalization())
    yield from (L.MaxPooling2D(), L.Flatten(), L.Dense(96), L.BatchNormalization(), L.ReLU(), L.Dense(10))


def recurrent(kind, both=False, mask=False, **options):
    def layers(L, keras):
        def layer(**more):
            made = getattr(L, kind)(64, **options, **more)
            return L.Bidirectional(made) if both else made

        yield from (L.Embedding(WORDS, 48, mask_zero=mask), layer(return_sequences=True), layer(), L.Dense(10))

    return sequential((24,), layers, "int32"), words(24)


def frames(L, keras):
    yield from (L.TimeDistributed(L.Conv2D(16, 3, 2, activation="relu")), L.TimeDistributed(L.Conv2D(32, 3, 2, activation="relu")))
    yield from (L.TimeDistributed(L.GlobalAveragePooling2D()), L.GRU(48), L.Dense(10))


def speech(L, keras):
    yield from (L.Reshape((100, 40, 1)), L.Conv2D(24, (11, 11), (2, 2), padding="same", use_bias=False))
    yield from (L.BatchNormalization(), L.ReLU(), L.Reshape((50, 20 * 24)))
    yield from (L.Bidirectional(L.GRU(64, return_sequences=True)), L.Dense(64, activation="relu"), L.Dense(29))


def columns(L, keras):
    yield from (L.BatchNormalization(), L.Dense(128, activation="selu"), L.Dense(128, activation="gelu"), L.BatchNormalization())
    yield from (L.Dense(64, activation="tanh"), L.Dense(32, activation="softplus"), L.Dense(3))


def digits(L, keras):
    yield from (L.Conv2D(16, 3, padding="same", use_bias=False), L.BatchNormalization(), L.ReLU(), L.Conv2D(32, 3, padding="same"))
    yield from (L.BatchNormalization(), L.ReLU(), L.MaxPooling2D(), L.DepthwiseConv2D(3, padding="same"), L.ReLU(6.0))
    yield from (L.Conv2D(48, 1), L.Activation("swish"), L.GlobalAveragePooling2D(), L.Dense(10))


def digit(index):
    return digit_data()[0][100 + 37 * index][None]


def digit_data():
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.images[..., None] / 8 - 1).astype(np.float32), data.target


def byte_image(side):
    return lambda index: np.clip(128 + 60 * image(side)(index), 0, 255).round().astype(np.float32)


NETWORKS = {name: application(name) for name in APPLICATIONS} | {
    "vgg": (sequential((64, 64, 3), vgg), image(64)),
    "audio": (sequential((2048, 1), audio), wave(2048)),
    "wavenet": (wavenet, wave(512)),
    "volume": (sequential((16, 32, 32, 1), volume), numbers(16, 32, 32, 1)),
    "separable": (sequential((64, 64, 3), separable), image(64)),
    "unet": (unet, image(64)),
    "deeplab": (deeplab, image(128)),
    "super_resolution": (super_resolution, image(48)),
    "transformer": (transformer, words(32)),
    "vision_transformer": (vision_transformer, image(64)),
    "mixer": (mixer, image(64)),
    "excitation": (excitation, image(64)),
    "preprocessed": (sequential((64, 64, 3), preprocessed), byte_image(64)),
    "normalized_first": (sequential((32, 32, 3), normalized_first), image(32)),
    "lstm": recurrent("LSTM"),
    "gru": recurrent("GRU"),
    "bilstm": recurrent("LSTM", both=True),
    "bigru": recurrent("GRU", both=True, reset_after=False),
    "masked_lstm": recurrent("LSTM", mask=True),
    "rnn": recurrent("SimpleRNN"),
    "frames": (sequential((6, 32, 32, 3), frames), numbers(6, 32, 32, 3)),
    "speech": (sequential((100, 40), speech), numbers(100, 40)),
    "columns": (sequential((20,), columns), numbers(20)),
    "digits": (sequential((8, 8, 1), digits), digit),
}
ENDINGS = (
    "mobilenet_v2_batch", "mobilenet_v2_raw", "mobilenet_v2_lite", "mobilenet_v2_lite8", "mobilenet_v3_opset11",
    "mobilenet_v3_raw", "efficientnet_opset13_batch", "efficientnet_raw", "resnet_v2_opset11", "densenet_opset15_raw",
    "unet_opset18_batch", "unet_raw", "audio_opset11", "audio_batch", "audio_raw", "deeplab_opset13", "deeplab_raw",
    "transformer_opset13_batch", "transformer_raw", "vision_transformer_batch", "convnext_raw", "separable_raw",
    "lstm_opset11", "gru_batch", "bilstm_batch", "excitation_raw", "mixer_batch", "digits_batch_raw", "digits_lite8",
    "preprocessed_raw", "super_resolution_opset18", "normalized_first_raw", "volume_raw", "wavenet_raw", "vgg_opset18_lite",
)  # fmt: skip
NAMES = tuple(f"keras_{name}" for name in (*NETWORKS, *ENDINGS))
ENDING = re.compile(r"^keras_(.*?)(?:_opset(\d+))?(_batch)?(_raw)?(_lite8?)?$")


def make(name, path, count):
    """PATH gets the network, by the interpreter that has TensorFlow; returns so many samples by input."""
    python = os.environ.get("QTENSOR_KERAS_PYTHON") or path.parent.parent / "keras" / "bin" / "python"
    samples = path.with_suffix(".made.npz")
    done = subprocess.run([python, __file__, name, path, samples, str(count)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    with np.load(samples) as made:
        stacked = {key: made[key] for key in made.files}
    samples.unlink()
    return [{key: value[index] for key, value in stacked.items()} for index in range(count)]


def settle(keras, model, samples):
    """Activations explode or vanish where a normalization has the statistics of nothing: those of samples take their
    place. Trained branches add little to what they are added to; random ones make chaos."""
    rng = np.random.default_rng(SEED)
    for layer in model.submodules:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
        if type(layer).__name__ == "LayerScale":
            layer.gamma.assign(np.full(layer.gamma.shape, RESIDUAL_SCALE, np.float32))
        if type(layer).__name__ == "StochasticDepth":
            layer.drop_path_rate = 0.0
    for layer in model.layers:
        if isinstance(layer, keras.layers.Add):
            norms = [part for part in layer._inbound_nodes[0].inbound_layers if hasattr(part, "moving_mean")]
            if norms:
                norms[-1].gamma.assign(norms[-1].gamma * RESIDUAL_SCALE)
    for weight in model.weights:
        if weight.name.endswith("bias:0") and not np.any(weight.numpy()):
            weight.assign(0.05 * rng.standard_normal(weight.shape))
    model(np.concatenate(samples[:SETTLED]), training=True)


def train(keras, model):
    images, labels = digit_data()
    model.compile(keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=64, epochs=15, verbose=0)


def lite(model, samples, eight_bits):
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if eight_bits:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for sample in samples[:SETTLED])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return converter.convert()


def write(name, path, count):
    import tensorflow as tf
    import tf2onnx

    keras = tf.keras
    keras.utils.set_random_seed(SEED)
    base, opset, batch, raw, by_lite = ENDING.match(name).groups()
    build, sample = NETWORKS[base]
    model, samples = build(keras), [sample(index) for index in range(count)]
    if base == "digits":
        train(keras, model)
    else:
        settle(keras, model, samples)
    options = {"opset": int(opset or OPSET), "output_path": str(path)}
    if raw:
        tf2onnx.optimizer.optimize_graph = lambda graph, *args, **kwargs: graph
    if by_lite:
        file = path.with_suffix(".tflite")
        file.write_bytes(lite(model, samples, by_lite == "_lite8"))
        proto, _ = tf2onnx.convert.from_tflite(str(file), **options)
    else:
        shape = (None if batch else 1, *samples[0].shape[1:])
        given = tf.TensorSpec(shape, samples[0].dtype, name="x")
        proto, _ = tf2onnx.convert.from_keras(model, (given,), **options)
    return {proto.graph.input[0].name: samples}


def main():
    name, path, samples, count = sys.argv[1:]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    made = write(name, pathlib.Path(path), int(count))
    np.savez(samples, **{key: np.stack(values) for key, values in made.items()})


if __name__ == "__main__":
    main()
