"""Every text is escaped."""

from shoal.web.markup import Markup, address, element, joined


def test_a_text_with_html_in_it_is_shown_as_it_is_written() -> None:
    assert element("p", "<script>alert('x')</script> & more") == (
        "<p>&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; more</p>"
    )


def test_an_attribute_cannot_be_closed_by_its_value() -> None:
    drawn = element("a", "x", href='/node/"><img src=x onerror=alert(1)>', aria_label="a'b")
    assert drawn == '<a href="/node/&quot;&gt;&lt;img src=x onerror=alert(1)&gt;" aria-label="a&#x27;b">x</a>'


def test_markup_is_not_escaped_twice() -> None:
    assert element("p", element("b", "a & b")) == "<p><b>a &amp; b</b></p>"
    assert isinstance(joined([element("b", "x"), "<"]), Markup)
    assert joined([element("b", "x"), "<"]) == "<b>x</b>&lt;"


def test_attributes_that_are_none_or_false_are_left_out() -> None:
    assert element("button", "x", hidden=False, class_=None, disabled=True) == "<button disabled>x</button>"


def test_shapes_of_a_drawing_are_closed_by_a_slash() -> None:
    assert element("svg", element("rect", width=1), element("path", d="M0 0")) == (
        '<svg><rect width="1"/><path d="M0 0"/></svg>'
    )


def test_every_part_of_an_address_is_quoted() -> None:
    assert address("pod", "a/b", "c?d#e") == "/pod/a%2Fb/c%3Fd%23e"
