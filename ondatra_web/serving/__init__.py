"""Everything that `bin/up` and `ondatra up` start: ports, processes beside the pages, and the Procfile's."""
