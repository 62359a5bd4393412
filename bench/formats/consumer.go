package formats

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/dataset"
)

// What a consumer orders to be trained on: images of more than 4 GiB, whose pixels take no disk before they are records.
const (
	manyImages = 440_000
	imageSide  = 64
	imageSize  = imageSide * imageSide * 3
	twoClasses = 2
	imageBatch = 32
)

// consumer measures how much memory a process takes that makes an order of 5.4 GB of images, and how long that takes.
func consumer(ctx context.Context, folder string) ([]Figure, error) {
	s := consume.Default()
	s.Folders = []string{folder}
	p := &s.Problem
	p.Model = filepath.Join(folder, "model.onnx")
	p.Data = &dataset.Options{Source: filepath.Join(folder, "images.safetensors"), Target: "label", Kinds: map[string]string{"image": "image"}}
	p.Optimizer = consume.SpecOptimizer{Name: "sgd", LearningRate: 0.01}
	p.Rounds, p.Shards, p.Steps, p.Batch = 1, 16, 8, imageBatch
	if err := errors.Join(writeImages(p.Data.Source), writeClassifier(p.Model)); err != nil {
		return nil, err
	}
	watch, begun := watchMemory(private), time.Now()
	d, err := consume.NewDraft(ctx, s, cpu.New(0))
	if err != nil {
		return nil, errors.Join(err, fmt.Errorf("%d MB were taken", watch()/1e6))
	}
	d.Unsigned() // names its files
	took, most := time.Since(begun).Seconds(), watch()
	size := float64(d.Job.Data.Len()*d.Job.Data.Type.Size()) / 1e9
	figures := []Figure{
		{Name: "formats/consumer/records", Unit: "GB", Value: size, Least: 4.3},
		{Name: "formats/consumer/speed", Unit: "MB/s of records made and named", Value: size * 1e3 / took},
	}
	if most > 0 {
		figures = append(figures, Figure{Name: "formats/consumer/memory", Unit: "MB, but for what is mapped from files", Value: float64(most) / 1e6, Most: 500})
	}
	return figures, nil
}

// writeImages writes images of zeros, where a file system leaves holes, and a label for each.
func writeImages(name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	pixels, all := int64(manyImages*imageSize), int64(manyImages*(imageSize+4))
	head := fmt.Sprintf(`{"image":{"dtype":"U8","shape":[%d,%d,%d,3],"data_offsets":[%d,%d]},"label":{"dtype":"I32","shape":[%[1]d],"data_offsets":[0,%[4]d]}}`,
		manyImages, imageSide, imageSide, all-pixels, all)
	for len(head)%8 != 0 {
		head += " "
	}
	w, r := bufio.NewWriter(f), rand.New(rand.NewPCG(3, 1))
	if _, err := io.WriteString(w, string(binary.LittleEndian.AppendUint64(nil, uint64(len(head))))+head); err != nil {
		return err
	}
	for range manyImages {
		if err := binary.Write(w, binary.LittleEndian, r.Int32N(twoClasses)); err != nil {
			return err
		}
	}
	return errors.Join(w.Flush(), f.Truncate(int64(8+len(head))+all))
}

// writeClassifier writes a model of one product.
func writeClassifier(name string) error {
	b := graph.NewBuilder("classifier")
	x := b.Input("image", tensor.Float32, tensor.Shape{imageBatch, imageSize})
	w := b.Init("weight", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{imageSize, twoClasses})))
	b.Output(b.Op("MatMul", x, w), tensor.Float32, tensor.Shape{imageBatch, twoClasses})
	model, err := onnx.Write(b.Graph())
	if err != nil {
		return err
	}
	return os.WriteFile(name, model, 0o600)
}
