# Each program writes the file of the command, and prints what the page says.
qtensor quantize net.onnx -o want.onnx --data calibration.npy --config onnx
for program in ./quantize ./quantize-cpp "python3 quantize.py" "java -cp qtensor.jar:. Quantize" "mono Quantize.exe"; do
  rm -f net-int8.onnx
  [[ $($program) == "The first image is a 4" ]]
  cmp want.onnx net-int8.onnx
done
