// Stands for vbom.ml/util, whose host is gone; nothing of it is compiled.
module absent.example/util
