package host

import "github.com/torchemu/torchemu/ccl/calibrate"

// CalibrationOf finds a calibration by its handle.
func CalibrationOf(handle int64) (*calibrate.Calibration, error) {
	if c, ok := Lookup(handle).(*calibrate.Calibration); ok {
		return c, nil
	}
	return nil, Raise("RuntimeError", "there is no such calibration")
}
