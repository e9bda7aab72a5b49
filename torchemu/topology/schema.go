package topology

// config is the tree of a topology file, and its schema. Keys that a file leaves out have the value they have in
// presets/default.yaml; checker knows the few that a file must give itself.
type config struct {
	Name        text         `yaml:"name"`
	Description text         `yaml:"description"`
	System      systemConfig `yaml:"system"`
	SIP         sipConfig    `yaml:"sip"`
	Cube        cubeConfig   `yaml:"cube"`
	PE          peConfig     `yaml:"pe"`
	Host        hostConfig   `yaml:"host"`

	Transport *transportConfig `yaml:"transport"`
	Kernels   *kernelsConfig   `yaml:"kernels"`
	Engines   *enginesConfig   `yaml:"engines"`
}

type systemConfig struct {
	Nodes   nodesConfig    `yaml:"nodes"`
	SIPs    sipsConfig     `yaml:"sips"`
	Switch  switchConfig   `yaml:"switch"`
	Network *networkConfig `yaml:"network"`
}

type nodesConfig struct {
	Count count `yaml:"count"`
}

type sipsConfig struct {
	Count   count      `yaml:"count"` // over all nodes
	Connect connect    `yaml:"connect"`
	W       count      `yaml:"w"` // torus2d only, of one node
	H       count      `yaml:"h"`
	Link    linkConfig `yaml:"link"`
}

type linkConfig struct {
	Bandwidth bandwidth `yaml:"bandwidth"`
	Latency   duration  `yaml:"latency"`
}

type switchConfig struct {
	Forwarding forwarding `yaml:"forwarding"`
	Latency    duration   `yaml:"latency"`

	InNetwork *inNetworkConfig `yaml:"in_network"`
}

type networkConfig struct {
	NIC        nicConfig  `yaml:"nic"`
	Forwarding forwarding `yaml:"forwarding"`
	Latency    duration   `yaml:"latency"`
}

type nicConfig struct {
	Bandwidth bandwidth `yaml:"bandwidth"`
	Latency   duration  `yaml:"latency"`
}

type sipConfig struct {
	CubeMesh meshConfig `yaml:"cube_mesh"`
	NoC      portConfig `yaml:"noc"`
	IO       portConfig `yaml:"io"`
}

type meshConfig struct {
	W count `yaml:"w"`
	H count `yaml:"h"`
}

type portConfig struct {
	Bandwidth  bandwidth  `yaml:"bandwidth"`
	Latency    duration   `yaml:"latency"`
	Forwarding forwarding `yaml:"forwarding"`
}

type cubeConfig struct {
	HBM      hbmConfig      `yaml:"hbm"`
	PELayout peLayoutConfig `yaml:"pe_layout"`
}

type hbmConfig struct {
	Bandwidth   bandwidth `yaml:"bandwidth"`
	Latency     duration  `yaml:"latency"`
	CapacityGiB count     `yaml:"capacity_gib"`
}

type peLayoutConfig struct {
	PEPerCorner count    `yaml:"pe_per_corner"`
	Corners     []corner `yaml:"corners"`
}

type peConfig struct {
	ScratchKiB count        `yaml:"scratch_kib"`
	Matrix     matrixConfig `yaml:"matrix"`
	Vector     vectorConfig `yaml:"vector"`
	DMA        dmaConfig    `yaml:"dma"`
}

type matrixConfig struct {
	F8  teraflops `yaml:"f8_tflops"`
	F16 teraflops `yaml:"f16_tflops"` // bf16 too
	F32 teraflops `yaml:"f32_tflops"`

	TF32 optionalTeraflops `yaml:"tf32_tflops"` // float32 where a program lets products round their operands
}

type vectorConfig struct {
	F32             teraflops `yaml:"f32_tflops"`
	ReduceBandwidth bandwidth `yaml:"reduce_bandwidth"` // of the result
}

type dmaConfig struct {
	Engines   count     `yaml:"engines"`
	Bandwidth bandwidth `yaml:"bandwidth"` // of one engine
	Setup     duration  `yaml:"setup"`     // of one message
}

type hostConfig struct {
	LaunchOverhead  duration   `yaml:"launch_overhead"`
	Autograd        duration   `yaml:"autograd"`
	DTensor         duration   `yaml:"dtensor"`
	DTensorBackward duration   `yaml:"dtensor_backward"`
	Functional      duration   `yaml:"functional_collective"`
	FSDP            duration   `yaml:"fsdp"`
	FSDPParameter   duration   `yaml:"fsdp_parameter"`
	OptimizerParam  duration   `yaml:"optimizer_parameter"`
	Link            linkConfig `yaml:"link"` // of each SIP to its host
}

func (c *config) nodes() int       { return int(c.System.Nodes.Count) }
func (c *config) sips() int        { return int(c.System.SIPs.Count) }
func (c *config) sipsPerNode() int { return c.sips() / c.nodes() }
func (c *config) cubes() int       { return int(c.SIP.CubeMesh.W) * int(c.SIP.CubeMesh.H) }
func (c *config) pes() int         { return int(c.Cube.PELayout.PEPerCorner) * len(c.Cube.PELayout.Corners) }

// fabric is the graph that joins the SIPs of one node.
func (c *config) fabric() shape {
	n := c.sipsPerNode()
	switch c.System.SIPs.Connect {
	case torus2D:
		return newGrid(int(c.System.SIPs.W), int(c.System.SIPs.H), true)
	case fullyConnected:
		return complete{n}
	case switched:
		return star{n}
	default:
		return newGrid(n, 1, true)
	}
}
