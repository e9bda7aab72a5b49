package pybind

import (
	"encoding/json"
	"strings"

	"github.com/torchemu/torchemu/ccl/calibrate"
	"github.com/torchemu/torchemu/pybind/internal/host"
	"github.com/torchemu/torchemu/torchemu/schema"
	"github.com/torchemu/torchemu/torchemu/topology"
)

// OpenCalibration reads files of measurements, a JSON list of their names, and returns the handle of a calibration to
// them. It starts from the transport of a topology; "" is the one that ships.
func OpenCalibration(files, library, topologyName string) (handle int64, err error) {
	defer host.Guard(&err)
	var names []string
	if err := json.Unmarshal([]byte(files), &names); err != nil {
		return 0, err
	}
	var base *topology.Topology
	if topologyName != "" {
		if base, err = topology.Load(topologyName); err != nil {
			return 0, err
		}
	}
	var rows []calibrate.Row
	for _, name := range names {
		data, err := schema.Read(name)
		if err != nil {
			return 0, host.Raise("ValueError", "measurements: %v", err)
		}
		more, err := calibrate.Parse(name, data)
		if err != nil {
			return 0, host.Raise("ValueError", "%v", err)
		}
		rows = append(rows, more...)
	}
	c, err := calibrate.NewCalibration(rows, library, base)
	if err != nil {
		return 0, host.Raise("ValueError", "%v", err)
	}
	return host.Register(c), nil
}

// CalibrateProducts fits what kernels take to a file of measured products of matrices.
func CalibrateProducts(handle int64, file string) (err error) {
	defer host.Guard(&err)
	c, err := host.CalibrationOf(handle)
	if err != nil {
		return err
	}
	data, err := schema.Read(file)
	if err != nil {
		return host.Raise("ValueError", "measurements: %v", err)
	}
	products, err := calibrate.ParseProducts(file, data)
	if err == nil {
		err = c.AddProducts(products)
	}
	if err != nil {
		return host.Raise("ValueError", "%v", err)
	}
	return nil
}

// StepCalibration does a part of a calibration and returns the share of all that is done: 1 when that is everything.
func StepCalibration(handle int64) (share float64, err error) {
	defer host.Guard(&err)
	c, err := host.CalibrationOf(handle)
	if err != nil {
		return 0, err
	}
	share, done, err := c.Step()
	if done {
		return 1, err
	}
	return min(share, 0.999), err
}

// CalibrationReport is the errors of a calibration that is done.
func CalibrationReport(handle int64) (text string, err error) {
	defer host.Guard(&err)
	c, err := host.CalibrationOf(handle)
	if err != nil {
		return "", err
	}
	var report strings.Builder
	err = c.Report(&report)
	return report.String(), err
}

// CalibrationYAML is a topology.yaml, with that name, of a calibration that is done.
func CalibrationYAML(handle int64, name string) (text string, err error) {
	defer host.Guard(&err)
	c, err := host.CalibrationOf(handle)
	if err != nil {
		return "", err
	}
	return c.YAML(name)
}

// CloseCalibration lets go of a calibration.
func CloseCalibration(handle int64) (err error) {
	defer host.Guard(&err)
	_, err = host.CalibrationOf(handle)
	host.Forget(handle)
	return err
}
