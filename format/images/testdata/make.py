"""Writes resize.npz and decode.npz, by which the tests compare with Pillow (pip install numpy pillow)."""

import io
import pathlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
SIZES = [((13, 17), (5, 7)), ((13, 17), (29, 31)), ((13, 17), (13, 4)), ((13, 17), (40, 17)), ((1, 1), (3, 2)), ((3, 50), (2, 3)), ((37, 41), (28, 28))]


def resized(rng):
    """Images of noise, and of black and white, whose cubic overshoots, in other sizes."""
    for n, ((h, w), (to_h, to_w)) in enumerate(SIZES):
        for channels in (1, 3):
            for kind in ("noise", "edges"):
                image = rng.integers(0, 256, (h, w, channels), dtype=np.uint8)
                if kind == "edges":
                    image = (image > 127).astype(np.uint8) * 255
                name = f"{n}-{kind}-{channels}"
                yield f"{name}-in", image
                source = Image.fromarray(image[..., 0] if channels == 1 else image)
                for filter, code in FILTERS.items():
                    yield f"{name}-{filter}", np.asarray(source.resize((to_w, to_h), code)).reshape(to_h, to_w, channels)


def files(rng):
    """Files of every mode, and their pixels as RGB and gray."""
    pixels = rng.integers(0, 256, (9, 11, 4), dtype=np.uint8)
    rgba = Image.fromarray(pixels)
    palette = rgba.convert("RGB").quantize(7)
    clear = palette.copy()
    clear.info["transparency"] = 2
    modes = {
        "rgb": rgba.convert("RGB"), "rgba": rgba, "gray": rgba.convert("L"), "graya": rgba.convert("LA"), "bits": rgba.convert("1"),
        "palette": palette, "clear": clear,
    }  # fmt: skip
    for name, image in modes.items():
        yield name, "png", image, {}
    smooth = np.stack(np.meshgrid(np.arange(24), np.arange(20)), -1) * 10
    smooth = np.concatenate([smooth, smooth[..., :1] // 2], -1).astype(np.uint8)
    yield "photo444", "jpeg", Image.fromarray(smooth), {"quality": 95, "subsampling": 0}
    yield "photo420", "jpeg", Image.fromarray(smooth), {"quality": 95, "subsampling": 2}
    yield "progressive", "jpeg", Image.fromarray(smooth), {"quality": 95, "subsampling": 0, "progressive": True}
    yield "photogray", "jpeg", Image.fromarray(smooth[..., 0]), {"quality": 95}


def decoded(rng):
    for name, format, image, options in files(rng):
        out = io.BytesIO()
        image.save(out, format, **options)
        data = out.getvalue()
        yield f"{name}.{format}", np.frombuffer(data, np.uint8)
        opened = Image.open(io.BytesIO(data))
        yield f"{name}.{format}-3", np.asarray(opened.convert("RGB"))
        yield f"{name}.{format}-1", np.asarray(opened.convert("L"))[..., None]


if __name__ == "__main__":
    np.savez_compressed(HERE / "resize.npz", **dict(resized(np.random.default_rng(1))))
    np.savez_compressed(HERE / "decode.npz", **dict(decoded(np.random.default_rng(2))))
