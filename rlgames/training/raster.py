"""Pictures of boards as pixels, for dashboards."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

GROUND = "#ffffff"
_font = functools.cache(ImageFont.load_default)


def pixels(picture: Any, scale: int = 2, margin: int = 6) -> npt.NDArray[np.uint8]:
    """The picture on white; ``[height, width, 3]``.

    Args:
        picture: of ``rlgames.games.drawing``.
        scale: pixels per pixel of the picture.
        margin: white pixels around it.
    """
    size = (round(picture.width * scale) + 2 * margin, round(picture.height * scale) + 2 * margin)
    image = Image.new("RGB", size, GROUND)
    pen = ImageDraw.Draw(image)
    for shape in picture.shapes:
        _draw(pen, shape.moved(margin / scale, margin / scale), scale)
    return np.asarray(image)


def _draw(pen: ImageDraw.ImageDraw, shape: Any, scale: int) -> None:
    x, y = shape.x * scale, shape.y * scale
    match type(shape).__name__:
        case "Rect":
            corner = (x + shape.width * scale, y + shape.height * scale)
            pen.rounded_rectangle(((x, y), corner), shape.radius * scale, fill=shape.fill)
        case "Circle":
            r = (shape.r + shape.width / 2) * scale
            outline = None if shape.stroke == "none" else shape.stroke
            fill = None if shape.fill == "none" else shape.fill
            pen.ellipse(((x - r, y - r), (x + r, y + r)), fill=fill, outline=outline, width=round(shape.width * scale))
        case "Line":
            ends = ((x, y), (shape.x2 * scale, shape.y2 * scale))
            pen.line(ends, fill=shape.stroke, width=max(1, round(shape.width * scale)))
        case "Text":
            pen.text((x, y), shape.text, fill=shape.fill, font=_font(shape.size * scale), anchor="mm")
