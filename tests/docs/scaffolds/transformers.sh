# All programs write one text; Python's files are those of the command.
for program in "python3 write.py" ./write "java -cp qtensor.jar:. Write" "mono Write.exe"; do
  [[ $($program) == "The library computes in float." ]]
done
for mode in int8 static w4; do
  cmp letters-$mode.onnx letters-$mode-python.onnx
done
