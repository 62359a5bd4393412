package train
