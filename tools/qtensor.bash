# SPDX-License-Identifier: Apache-2.0
# Completion of the qtensor command in bash. Sub-commands, options and the kinds of their values are what its --help
# says, so none can be missing; only names that the library knows stand here.

_qtensor() {
  local cur prev words cword
  _init_completion || return

  local word command=
  for word in "${words[@]:1:cword-1}"; do
    [[ $word == -* ]] || { command=$word && break; }
  done
  local help kind=
  # shellcheck disable=SC2086  # without a sub-command: no word
  help=$("${1/#\~/$HOME}" $command --help 2> /dev/null) || return

  # FILE.npy, TEXT:{nchw,nhwc}, NAME, N ...: what the help has behind an option, or first in the list of arguments.
  if [[ $prev == -* && $prev != */* ]]; then
    kind=$(sed -nE "s/^  (-.,)?$prev(,--\S+)? ([^ ]+).*/\3/p" <<< "$help")
  elif [[ $cur != -* ]]; then
    kind=$(sed -nE '/^Positionals:/,/^$/ s/^  (\S+) .*/\1/p' <<< "$help" | head -n 1)
  fi
  case $prev:$kind in
    *:*{*})
      kind=${kind#*\{}
      kind=${kind%\}*}
      mapfile -t COMPREPLY < <(compgen -W "${kind//,/ }" -- "$cur")
      ;;
    --config:NAME)
      _filedir json
      mapfile -O ${#COMPREPLY[@]} -t COMPREPLY < <(compgen -W "onnx fbgemm x86 qnnpack onednn nvidia tflite torchvision_fbgemm torchvision_qnnpack" -- "$cur")
      ;;
    --observer:NAME)
      mapfile -t COMPREPLY < <(compgen -W "minmax max moving_average mse histogram percentile entropy
        nvidia_percentile nvidia_entropy nvidia_mse fixed" -- "$cur")
      ;;
    --isa:NAME)
      mapfile -t COMPREPLY < <(compgen -W "scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm" -- "$cur")
      ;;
    *:*.*) _filedir "${kind##*.}" ;;
    *:DATA | *:OUT) _filedir '@(npy|safetensors)' ;;
    *:FILE) _filedir '@(onnx|npy|safetensors)' ;;
    -*:[A-Z]*) [[ $kind == *: ]] || return 0 ;;& # a number; "Needs:" and the like follow a flag
    *)
      if [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(sed -nE '/^Subcommands:/,$ s/^  (\S+) .*/\1/p' <<< "$help")" -- "$cur")
      fi
      if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(sed -nE 's/^  (-.,)?(--[a-z0-9-]+).*/\2/p' <<< "$help")" -- "$cur")
      fi
      ;;
  esac
} && complete -F _qtensor qtensor
