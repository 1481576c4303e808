"""Frames of SPDY are those of the published format, in whatever pieces they arrive."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agent.kubelet.spdy import Data, Frame, FrameReader, FrameWriter, GoAway, Opened, Ping, Reset

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


def opening(stream: int, block: bytes) -> bytes:
    content = struct.pack("!IIBB", stream, 0, 0, 0) + block
    return bytes.fromhex("80030001") + struct.pack("!I", len(content)) + content


def test_a_stream_that_the_other_side_opens_has_headers() -> None:
    writer = FrameWriter()

    assert frames(writer.opened(1, {"streamType": "error", "port": "80"})) == [
        Opened(1, {"streamtype": "error", "port": "80"})
    ]


def test_headers_are_compressed_with_the_dictionary_of_the_format() -> None:
    # The checksum of the published dictionary, which a compressor that uses it writes behind its first two bytes.
    block = bytes.fromhex("78bbe3c6a7c2")

    assert frames(opening(1, block)) == [Opened(1, {})]
    assert frames(opening(1, bytes.fromhex("78bb00000001"))) == [GoAway()]


def test_an_accepted_stream_is_answered_and_a_cancelled_one_is_reset() -> None:
    writer = FrameWriter()

    assert writer.accepted(3)[:4] == bytes.fromhex("80030002")
    assert frames(writer.accepted(3), writer.reset(5)) == [Reset(5)]
