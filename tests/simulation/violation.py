"""What every check of the simulation raises: the same as the rules of histories do."""

from stepwell_server.history.violations import Violation as Violation
from stepwell_server.history.violations import violation as violation
