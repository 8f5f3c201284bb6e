"""Programs that use Placement over HTTP, any implementation; they never import it."""
