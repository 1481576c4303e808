"""ControllerRevisions: the templates that a stateful set or daemon set had, so that one can go back to them."""
