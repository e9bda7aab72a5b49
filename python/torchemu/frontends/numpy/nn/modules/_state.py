"""state_dict and load_state_dict: a module's parameters and persistent buffers as a dictionary."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules._members import Members
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.frontends.numpy.utils.hooks import Hooks, RemovableHandle, registered

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The keys that load_state_dict found missing, and those that it had no use for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__


class States(Members):
    """The part of Module that saves and restores."""

    _version: int = 1
    _load_state_dict_pre_hooks: Hooks
    # -- saving

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by their paths.

        Args:
            destination: the dictionary to put them into; None: a new one.
            prefix: what the paths are to begin with.
            keep_vars: the tensors themselves; else they are detached.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts the module's own members, without those of its children, into the dictionary."""
        for name, t in self._saved().items():
            destination[prefix + name] = t if keep_vars else t.detach()
        if type(self).get_extra_state is not States.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _saved(self) -> dict[str, Tensor]:
        """The members that a state has."""
        buffers = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        return {k: v for k, v in {**self._parameters, **buffers}.items() if v is not None}

    def get_extra_state(self) -> Any:
        """Returns what a module that overrides this has in its state besides tensors."""
        raise RuntimeError("Module.get_extra_state() is for modules that override it")

    def set_extra_state(self, state: Any) -> None:
        """Takes over what get_extra_state returned."""
        raise RuntimeError("Module.set_extra_state() is for modules that override it")

    # -- loading

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies parameters and buffers from a state_dict.

        Args:
            state_dict: tensors by their paths.
            strict: whether all that the module has, and nothing else, must be there.
            assign: put the given tensors in the place of the module's instead of copying elements.

        Returns:
            The keys that were missing, and those that the module has no use for.

        Raises:
            TypeError: no dictionary. RuntimeError: a shape is another, or with strict, keys are missing or unexpected.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(state_dict, assign)
        loading.load(self, "")
        texts = [*loading.complaints_about_keys(), *loading.errors] if strict else loading.errors
        if texts:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(self._get_name(), "\n\t".join(texts))
            )
        return _IncompatibleKeys(loading.missing, loading.unexpected)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Copies the module's own members, without those of its children; what is wrong is added to the lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, member in self._saved().items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.extend([key] if strict else [])
                continue
            error = self._loaded(name, member, key, state_dict[key], assign)
            error_msgs.extend([error] if error else [])
        self._load_extra_state(state_dict, prefix + _EXTRA_STATE_KEY_SUFFIX, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._unexpected(state_dict, prefix))

    def _loaded(self, name: str, member: Tensor, key: str, given: Any, assign: bool) -> str:
        """Copies one member, or says what is wrong."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        if given._shape != member._shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                f"the shape in current model is {member.shape}."
            )
        if assign:
            is_parameter = isinstance(member, Parameter) and not isinstance(given, Parameter)
            setattr(self, name, Parameter(given, member.requires_grad) if is_parameter else given)
            return ""
        try:
            with no_grad():
                member.copy_(given)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {member.size()} and '
                f"whose dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
            )
        return ""

    def _load_extra_state(
        self, state_dict: dict[str, Any], key: str, strict: bool, missing_keys: list[str], unexpected_keys: list[str]
    ) -> None:
        wanted = type(self).set_extra_state is not States.set_extra_state
        if wanted and key in state_dict:
            self.set_extra_state(state_dict[key])
        elif strict and wanted:
            missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _unexpected(self, state_dict: dict[str, Any], prefix: str) -> Iterator[str]:
        """The keys that are neither the module's nor a child's."""
        own = self._saved()
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + _EXTRA_STATE_KEY_SUFFIX:
                first, dot, _ = key.removeprefix(prefix).partition(".")
                if not (dot and first in self._modules) and key.removeprefix(prefix) not in own:
                    yield key

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) is called before
        loading."""
        return registered(self._load_state_dict_pre_hooks, hook)


class _Loading:
    """One call of load_state_dict: what is loaded, and what was wrong so far."""

    def __init__(self, state_dict: Mapping[str, Any], assign: bool) -> None:
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self._assign = assign
        self._state = OrderedDict(state_dict)
        self._metadata: dict[str, Any] | None = getattr(state_dict, "_metadata", None)

    def load(self, module: Any, prefix: str) -> None:
        """Loads a module and all below it."""
        about = {} if self._metadata is None else dict(self._metadata.get(prefix[:-1], {}))
        if self._assign:
            about["assign_to_params_buffers"] = True
        lists = (self.missing, self.unexpected, self.errors)
        module._load_from_state_dict(self._state, prefix, about, True, *lists)
        for name, child in module._modules.items():
            if child is not None:
                self.load(child, f"{prefix}{name}.")

    def complaints_about_keys(self) -> list[str]:
        """Returns what strict loading says about the keys."""
        found = {"Missing": self.missing, "Unexpected": self.unexpected}
        return [
            "{} key(s) in state_dict: {}. ".format(what, ", ".join(f'"{key}"' for key in keys))
            for what, keys in found.items()
            if keys
        ]
