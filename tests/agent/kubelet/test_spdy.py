"""Frames of SPDY are those of the published format, in whatever pieces they arrive."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agent.kubelet.spdy import Data, Frame, FrameReader, FrameWriter, GoAway, Ping, Reset

PING = bytes.fromhex("80030006 00000004 00000007")
RESET = bytes.fromhex("80030003 00000008 00000005 00000001")
GO_AWAY = bytes.fromhex("80030007 00000008 00000000 00000000")
REPLY = bytes.fromhex("80030002 00000006 00000003 abcd")
END_WITH_REPLY = bytes.fromhex("80030002 01000006 00000003 abcd")
DATA = bytes.fromhex("00000003 00000002") + b"hi"
LAST = bytes.fromhex("00000003 01000000")


def frames(*pieces: bytes) -> list[Frame]:
    reader = FrameReader()
    return [frame for piece in pieces for frame in reader.feed(piece)]


@pytest.mark.parametrize(
    ("received", "frame"),
    [
        (PING, Ping(7)),
        (RESET, Reset(5)),
        (GO_AWAY, GoAway()),
        (DATA, Data(3, b"hi", False)),
        (LAST, Data(3, b"", True)),
        (END_WITH_REPLY, Data(3, b"", True)),
    ],
)
def test_each_frame_is_read(received: bytes, frame: Frame) -> None:
    assert frames(received) == [frame]


def test_replies_and_frames_that_are_cut_off_say_nothing() -> None:
    assert frames(REPLY, DATA[:-1]) == []


@given(st.lists(st.sampled_from([PING, RESET, GO_AWAY, REPLY, DATA, LAST]), max_size=6), st.integers(1, 9))
def test_pieces_of_any_size_give_the_same_frames(sent: list[bytes], size: int) -> None:
    whole = b"".join(sent)
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]

    assert frames(*pieces) == frames(whole)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_exception(received: bytes) -> None:
    assert len(frames(received)) <= len(received)


def test_what_is_written_is_read() -> None:
    writer = FrameWriter()

    assert frames(writer.data(3, b"hi")) == [Data(3, b"hi", False)]
    assert frames(writer.data(3, b"", is_end=True)) == [Data(3, b"", True)]
    assert frames(writer.ping(7)) == [Ping(7)]


def test_the_headers_of_all_streams_are_one_compressed_sequence() -> None:
    writer, inflater = FrameWriter(), zlib.decompressobj()
    first, second = writer.opened(1, {"streamType": "error"}), writer.opened(3, {"streamType": "stdin"})

    assert first[:4] == bytes.fromhex("80030001")
    assert first[8:16] == bytes.fromhex("00000001 00000000")
    block = bytes.fromhex("00000001 0000000a") + b"streamtype" + bytes.fromhex("00000005")
    assert inflater.decompress(first[18:]) == block + b"error"
    assert inflater.decompress(second[18:]) == block + b"stdin"
