// Stands for bou.ke/monkey, whose host is gone; nothing of it is compiled.
module absent.example/monkey
