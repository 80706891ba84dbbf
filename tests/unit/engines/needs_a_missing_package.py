"""An engine module whose dependency is not installed anywhere."""

import a_package_that_nobody_has  # type: ignore[import-not-found]

build = a_package_that_nobody_has.build
