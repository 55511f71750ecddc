"""What a recogniser returns, in seconds and as the writers of formats take it."""

import pytest

import toyspeech


def test_a_transcription_as_a_result():
    words, samples, labels = toyspeech.speech(seed=1, utterances=10)[0]
    found = toyspeech.recognizer().recognize(samples, rate=toyspeech.RATE)
    result = found.as_result("ann/u1")
    assert [t.name for t in result.tokens] == list(words)
    assert [t.name for t in result.phones] == [t.name for t in found.phones]
    assert result.seconds == pytest.approx(len(labels) / 100)
    phones = found.as_result("u1", level="phones", channel=2)
    assert (phones.tokens, phones.phones, phones.channel) == (result.phones, (), 2)
    with pytest.raises(ValueError, match="'phones' or 'words'"):
        found.segments("letters")
