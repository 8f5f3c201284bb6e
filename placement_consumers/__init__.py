"""Programs that use Placement over HTTP, ours or any other; it never imports them."""
