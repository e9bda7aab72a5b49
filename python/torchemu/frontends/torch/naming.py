"""Names of process groups, by which PyTorch's Python and C++ ask for them."""

from __future__ import annotations


class Named:
    """The names of a group.

    Attributes:
        backend: the name by which the program asked for the backend.
    """

    backend: str
    _name: str
    _desc: str

    def name(self) -> str:
        """The backend's name."""
        return self.backend

    def getBackendName(self) -> str:  # noqa: N802 (what C++ calls it)
        """The backend that it is: where it is called gloo, PyTorch's logger would look into gloo's threads."""
        return "ahbm"

    _get_backend_name = name

    @property
    def group_name(self) -> str:
        """The group's name."""
        return self._name

    pg_name = group_name

    def getGroupName(self) -> str:  # noqa: N802 (what C++ calls it)
        """The same as group_name."""
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    setGroupName = _set_group_name  # noqa: N815

    @property
    def group_desc(self) -> str:
        """The program's description of the group."""
        return self._desc

    def getGroupDesc(self) -> str:  # noqa: N802
        """The same as group_desc."""
        return self._desc

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    setGroupDesc = _set_group_desc  # noqa: N815
