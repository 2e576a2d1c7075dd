package CdcBridge::FakeServer;

# A server that lies: a fake MySQL server on loopback, or a proxy before an honest one that damages what it says.
#
#   my $fake = CdcBridge::FakeServer->new(upstream => $source, seed => 42);
#   $fake->behave('honest');           # connections made from now on reach the upstream undamaged
#   $fake->behave('short_row');        # connections that stand are cut; new ones meet this behaviour
#   print $fake->acted;                # how often the lie was told since then
#
# An honest one can hold an answer back, so that a client waits that holds no lock anywhere, with an answer that is fixed already:
#
#   $fake->hold('FROM `shop`\.`t`');   # answers to queries that match, from now on, and the binary log when "binary log dump" does
#   $fake->wait_until_held;            # the server has answered one
#   $fake->hold('...'), $fake->let_go; # what was held so far goes on
#   $fake->lead_to($other);            # new connections reach another server; those that stand stay
#
# Behaviours: login(), answers() and dumps() list their names by the phase they lie in. All but those of login and a few of
# answers speak through the proxy: they come where the setup queries were answered as a real server does. Which packet is
# damaged, and where, comes from the seed, the number of the behaviour and the number of the connection.
#
# Nothing here forges data that only a checksum could tell from true data: an honest server afterwards must find the target
# as it was.

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until reap slurp);
use Compress::Zlib qw(crc32);
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes ();

use constant { FRAME_MAX => 0xffffff, ENDLESS_BYTES => 96 << 20, CHUNK => 1 << 16 };

# name => [phase, how]; "how" gets (state, payload, sequence) and gives bytes to send in place of the packet, or undef
# after it has dealt with the client itself.
my %lies = (
	# before any query: nothing of the upstream is needed
	garbage_greeting => [ 'greeting', sub { return frame($_[2], random_bytes(1 + int(rand(200)))); } ],
	garbage_stream => [ 'greeting', sub { return random_bytes(1 + int(rand(5000))); } ],
	cut_greeting => [ 'greeting', sub { my ($s, $p, $n) = @_; $s->{hang_up} = 1; return cut(frame($n, $p)); } ],
	short_greeting => [ 'greeting', sub { my ($s, $p, $n) = @_; return frame($n, cut($p)); } ],
	long_greeting => [ 'greeting', sub { my ($s, $p, $n) = @_; return frame($n, $p . random_bytes(70000)); } ],
	error_at_login => [ 'login', sub { return frame($_[2], "\xff" . pack('v', 1045) . '#28000' . random_bytes(300)); } ],
	unknown_auth => [ 'login', sub { return frame($_[2], "\xfe" . "no_such_plugin\0" . random_bytes(20)); } ],
	garbage_login => [ 'login', sub { return frame($_[2], random_bytes(int(rand(100)))); } ],

	# in the answer to a query
	absurd_columns => [ 'header', sub { return frame($_[2], "\xfd" . substr(pack('V', 1 << 24), 0, 3)) . frame($_[2] + 1, "\xfe\0\0\2\0"); } ],
	many_columns => [ 'header', sub { return frame($_[2], "\xfc" . pack('v', 4000)) . $_[1]; } ],
	cut_header => [ 'header', sub { my ($s, $p, $n) = @_; $s->{hang_up} = 1; return frame($n, $p); } ],
	infile_request => [ 'header', sub { return frame($_[2], "\xfb/etc/passwd"); } ],
	ok_not_rows => [ 'header', sub { $_[0]{swallow} = 1; return frame($_[2], "\0\0\0\2\0\0\0"); } ],
	garbage_answer => [ 'any', sub { return frame($_[2], random_bytes(1 + int(rand(300)))); } ],
	error_of_bytes => [ 'header', sub { $_[0]{swallow} = 1; return frame($_[2], "\xff" . pack('v', 1000 + int(rand(3000))) . "#HY000" . random_bytes(700)); } ],
	empty_packet => [ 'any', sub { return frame($_[2], ''); } ],
	wrong_sequence => [ 'any', sub { my ($s, $p, $n) = @_; return frame($n + 1 + int(rand(200)), $p); } ],
	short_column => [ 'column', sub { my ($s, $p, $n) = @_; return frame($n, cut($p)); } ],
	short_row => [ 'row', sub { my ($s, $p, $n) = @_; return frame($n, cut($p)); } ],
	long_value => [ 'row', sub { my ($s, $p, $n) = @_; return frame($n, "\xfe" . pack('Q<', 0xfffffff0) . $p); } ],
	null_row => [ 'row', sub { my ($s, $p, $n) = @_; return frame($n, "\xfb" x $s->{columns}); } ],
	cut_row => [ 'row', sub { my ($s, $p, $n) = @_; $s->{hang_up} = 1; return cut(frame($n, $p)); } ],
	announced_more => [ 'row', sub { my ($s, $p, $n) = @_; $s->{hang_up} = 1; return substr(pack('V', length($p) + 1000), 0, 3) . chr($n) . $p; } ],
	endless_rows => [ 'row', \&endless_rows ],
	endless_packet => [ 'row', \&endless_packet ],

	# in the binary log dump; $_[1] is the packet: a zero byte and the event
	dump_zero => [ 'dump', sub { return frame($_[2], ''); } ],
	dump_only_ok => [ 'dump', sub { return frame($_[2], "\0"); } ],
	dump_error => [ 'dump', sub { return frame($_[2], "\xff" . pack('v', 1236) . '#HY000' . random_bytes(300)); } ],
	dump_garbage => [ 'dump', sub { return frame($_[2], "\0" . random_bytes(1 + int(rand(400)))); } ],
	dump_flip => [ 'event', sub { my ($s, $p, $n) = @_; substr($p, 1 + $_, 1) ^= chr(1 << int(rand(8))) for 19 + int(rand(length($p) - 20)); return frame($n, $p); } ],
	dump_short => [ 'event', sub { my ($s, $p, $n) = @_; return frame($n, substr($p, 0, 1 + int(rand(length($p) - 1)))); } ],
	# cut before the first row: a cut between two rows is a forgery
	dump_short_sealed => [ 'event', sub { my ($s, $p, $n) = @_; return frame($n, seal(substr($p, 0, 20 + int(rand(7))))); } ],
	dump_long => [ 'event', sub { my ($s, $p, $n) = @_; return frame($n, $p . random_bytes(1 + int(rand(100)))); } ],
	dump_type_255 => [ 'event', sub { my ($s, $p, $n) = @_; substr($p, 5, 1) = "\xff"; return frame($n, reseal($p)); } ],
	dump_type_255_rows => [ 'rows', sub { my ($s, $p, $n) = @_; substr($p, 5, 1) = "\xff"; return frame($n, reseal($p)); } ],
	dump_length => [ 'event', sub { my ($s, $p, $n) = @_; substr($p, 10, 4) = random_bytes(4); return frame($n, $p); } ],
	dump_unknown_table => [ 'rows', sub { my ($s, $p, $n) = @_; substr($p, 20, 6) = "\x77\x66\x55\x44\x33\x22"; return frame($n, reseal($p)); } ],
	dump_no_table_map => [ 'rows', sub { my ($s, $p, $n) = @_; substr($p, 20, 6) = "\x78\x66\x55\0\0\0"; return frame($n, reseal($p)); } ],
	dump_bad_table_map => [ 'table_map', sub { my ($s, $p, $n) = @_; substr($p, 28) = random_bytes(length($p) - 28); return frame($n, reseal($p)); } ],
	dump_bad_rotate => [ 'dump', sub { return frame($_[2], seal("\0" . event_header(4, 0x20) . "\xff" x 8 . 'bl.000009')); } ],
	dump_rotate_bytes => [ 'dump', sub { return frame($_[2], seal("\0" . event_header(4, 0x20) . "\4" . "\0" x 7 . "bl\xff\xfe.000009")); } ],
	dump_wrong_sequence => [ 'event', sub { my ($s, $p, $n) = @_; return frame($n + 1 + int(rand(200)), $p); } ],
	dump_endless_packet => [ 'event', \&endless_packet ],
	dump_hang_up => [ 'event', sub { my ($s, $p, $n) = @_; $s->{hang_up} = 1; return cut(frame($n, $p)); } ],
);

# How many packets of that phase may pass before the lie.
my %packets = (header => 8, column => 15, row => 12, any => 30, dump => 10, event => 10, rows => 3, table_map => 3);

my %group = (greeting => 'login', login => 'login', header => 'answers', any => 'answers', column => 'answers', row => 'answers',
	dump => 'dumps', event => 'dumps', rows => 'dumps', table_map => 'dumps');

sub names { my ($group) = @_; return sort grep { $group{ $lies{$_}[0] } eq $group } keys %lies; }
sub login { return names('login'); }
sub answers { return names('answers'); }
sub dumps { return names('dumps'); }

sub new
{
	my ($class, %option) = @_;
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 50) or die "listen: $!\n";
	my $self = bless { dir => new_folder('fake'), upstream => $option{upstream}, seed => $option{seed} // time(), number => 0,
		port => $listen->sockport, owner => $$ }, $class;
	$self->lead_to($option{upstream});
	$self->behave($option{behaviour} // 'honest');
	$self->{pid} = fork() // die "fork: $!\n";
	if (!$self->{pid})
	{
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
		$SIG{CHLD} = 'IGNORE';
		$self->_accept($listen);
		POSIX::_exit(0);
	}
	close($listen);
	return $self;
}

sub host { return '127.0.0.1'; }
sub port { return $_[0]{port}; }

# What connections meet from now on; those that stand are cut.
sub behave
{
	my ($self, $name) = @_;
	die "unknown behaviour $name\n" unless $name eq 'honest' || $lies{$name};
	$self->{number}++;
	$self->_tell('behaviour', "$self->{number} $name\n");
	return $self;
}

# What the processes of the connections read.
sub _tell
{
	my ($self, $what, $text) = @_;
	open(my $out, '>', "$self->{dir}/new") or die "$what: $!\n";
	print $out $text;
	close($out) or die "$what: $!\n";
	rename("$self->{dir}/new", "$self->{dir}/$what") or die "$what: $!\n";
	return;
}

sub hold
{
	my ($self, $pattern) = @_;
	$self->{hold}++;
	$self->_tell('hold', "$self->{hold} $pattern");
	return $self;
}

sub let_go
{
	my ($self) = @_;
	unlink("$self->{dir}/hold");
	return $self;
}

# Dies when nothing came that could be held.
sub wait_until_held
{
	my ($self, $seconds) = @_;
	poll_until(sub { return -e "$self->{dir}/held.$self->{hold}" }, $seconds) or die "no query came whose answer could be held\n";
	return $self;
}

sub lead_to
{
	my ($self, $upstream) = @_;
	$self->_tell('upstream', $upstream->port);
	return $self;
}

# How often the behaviour of now has lied.
sub acted
{
	my ($self) = @_;
	return -s "$self->{dir}/acted.$self->{number}" // 0;
}

# When it last did, in seconds since 1970; 0 when it did not yet.
sub acted_at
{
	my ($self) = @_;
	return (Time::HiRes::stat("$self->{dir}/acted.$self->{number}"))[9] // 0;
}

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;
	kill('TERM', $pid);
	reap($pid, 10);
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local $?;
	$self->stop if $self->{owner} == $$;
	return;
}

# ---- in the server's process

sub _behaviour
{
	my ($self) = @_;
	return slurp("$self->{dir}/behaviour") =~ /^(\d+) (\w+)/;
}

sub _accept
{
	my ($self, $listen) = @_;
	my $select = IO::Select->new($listen);
	my $connections = 0;
	while (getppid() == $self->{owner})
	{
		next unless $select->can_read(0.2);
		my $client = $listen->accept or next;
		$connections++;
		my $pid = fork() // next;
		next if $pid;
		close($listen);
		my ($number, $name) = $self->_behaviour;
		srand($self->{seed} * 1009 + $number * 31 + $connections);
		$SIG{PIPE} = 'IGNORE';
		eval { $self->_serve($client, $number, $name); 1 } or warn "# fake server: $@";
		POSIX::_exit(0);
	}
	return;
}

# One connection: bytes of the client go on as they are, packets of the server may be replaced.
sub _serve
{
	my ($self, $client, $number, $name) = @_;
	my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => slurp("$self->{dir}/upstream"), Proto => 'tcp') or return;
	my ($phase, $how) = $name eq 'honest' ? ('') : @{ $lies{$name} };
	my $state = { client => $client, fake => $self, number => $number, stage => 'greeting', wait => int(rand($packets{$phase} // 1)) };
	my ($from_client, $from_server) = ('', '');
	my $select = IO::Select->new($client, $server);
	while ($self->_is_current($number))
	{
		# an answer that is held is not looked at again
		my $waits = !$how && $self->_holds($state) && ($state->{noted} // 0) == $state->{held_by};
		$waits ? $select->remove($server) : $select->add($server);
		for my $ready ($select->can_read($waits ? 0.02 : 0.1))
		{
			if ($ready == $server && !$how && $self->_holds($state))
			{
				# there is an answer: what a query sees is settled
				$state->{noted} = $state->{held_by};
				open(my $note, '>', "$self->{dir}/held.$state->{noted}");
				last;
			}
			my $buffer = $ready == $client ? \$from_client : \$from_server;
			my $old = length($$buffer);
			return unless sysread($ready, $$buffer, CHUNK, $old);
			if ($ready == $client)
			{
				send_all($state, $server, substr($$buffer, $old)) or return;
				note_commands($state, \$from_client);
				next;
			}
			if (!$how)
			{
				send_all($state, $client, $from_server) or return;
				$from_server = '';
				next;
			}
			while (length($from_server) >= 4)
			{
				my $length = unpack('V', substr($from_server, 0, 3) . "\0");
				last if length($from_server) < 4 + $length;
				my $sequence = ord(substr($from_server, 3, 1));
				my $payload = substr($from_server, 4, $length);
				substr($from_server, 0, 4 + $length) = '';
				my $kind = note_packet($state, $payload);
				my $bytes = frame($sequence, $payload);
				next if $state->{swallow};
				if (lies_here($phase, $kind, $payload) && $state->{wait}-- == 0)
				{
					open(my $acted, '>>', "$self->{dir}/acted.$number");
					print $acted '.';
					close($acted);
					$bytes = $how->($state, $payload, $sequence);
					return unless defined $bytes;
				}
				send_all($state, $client, $bytes) or return;
				return if $state->{hang_up};
			}
		}
	}
	return;
}

# Is what the server says now to be held back? A query's answer goes on when something else is to be held.
sub _holds
{
	my ($self, $state) = @_;
	my $command = $state->{command} or return 0;
	open(my $in, '<', "$self->{dir}/hold") or return 0;
	my ($number, $pattern) = <$in> =~ /^(\d+) (.*)/ or return 0;
	return 0 if $state->{stage} ne 'dump' && ($state->{held_by} // $number) != $number;
	return 0 if $command !~ /$pattern/;
	$state->{held_by} = $number;
	return 1;
}

sub _is_current
{
	my ($self, $number) = @_;
	my ($now) = $self->_behaviour;
	return defined $now && $now == $number;
}

# The client's packets: the first is the login, one with sequence number 0 a command.
sub note_commands
{
	my ($state, $buffer) = @_;
	while (length($$buffer) >= 5)
	{
		my $length = unpack('V', substr($$buffer, 0, 3) . "\0");
		last if length($$buffer) < 4 + $length;
		my ($sequence, $command) = unpack('CC', substr($$buffer, 3, 2));
		my $text = substr($$buffer, 5, $length - 1);
		substr($$buffer, 0, 4 + $length) = '';
		if ($sequence > 0) { $state->{stage} = 'login' if $state->{stage} eq 'greeting'; next; }
		$state->{swallow} = 0;
		$state->{stage} = $command == 0x12 || $command == 0x1e ? 'dump' : 'query';
		$state->{index} = $state->{columns} = 0;
		$state->{command} = $state->{stage} eq 'dump' ? 'binary log dump' : $command == 3 ? $text : undef;
		delete $state->{held_by};
	}
	return;
}

# What a packet of the server is.
sub note_packet
{
	my ($state, $payload) = @_;
	return $state->{stage} unless $state->{stage} eq 'query';
	my $index = $state->{index}++;
	my $first = length($payload) ? ord($payload) : 0;
	if ($index == 0)
	{
		$state->{columns} = $first > 0 && $first < 251 ? $first : 0;
		return $state->{columns} ? 'header' : 'other';
	}
	return 'column' if $index <= $state->{columns};
	return 'other' if $first == 0xff || ($first == 0xfe && length($payload) < 9);
	return 'row';
}

sub lies_here
{
	my ($phase, $kind, $payload) = @_;
	return $kind =~ /^(header|column|row)$/ if $phase eq 'any';
	return $kind eq $phase if $kind ne 'dump';
	return 1 if $phase eq 'dump';
	return 0 if length($payload) < 24;
	my $type = ord(substr($payload, 5, 1));
	return ($type >= 23 && $type <= 25) || ($type >= 30 && $type <= 32) if $phase eq 'rows';
	return $type == 19 if $phase eq 'table_map';
	# the start of a dump has no checksum or is not covered by it
	return $phase eq 'event' && $type != 4 && $type != 15 && $type != 27;
}

sub send_all
{
	my ($state, $to, $bytes) = @_;
	my $select = IO::Select->new($to);
	while (length($bytes))
	{
		return 0 unless $state->{fake}->_is_current($state->{number});
		next unless $select->can_write(0.1);
		$to->blocking(0);
		my $sent = syswrite($to, $bytes, CHUNK);
		$to->blocking(1);
		return 0 if !defined $sent && !$!{EAGAIN};
		substr($bytes, 0, $sent) = '' if $sent;
	}
	return 1;
}

# The same row until nobody reads any more, or the behaviour changes.
sub endless_rows
{
	my ($state, $payload, $sequence) = @_;
	1 while send_all($state, $state->{client}, join('', map { frame($sequence++, $payload) } 1 .. 200));
	return;
}

# A packet of many full frames that has no end; then silence.
sub endless_packet
{
	my ($state, $payload, $sequence) = @_;
	my $filling = $payload . "\1" x (FRAME_MAX - length($payload));
	for (my $sent = 0; $sent < ENDLESS_BYTES; $sent += FRAME_MAX)
	{
		return unless send_all($state, $state->{client}, frame($sequence++, $filling));
	}
	my $select = IO::Select->new($state->{client});
	while ($state->{fake}->_is_current($state->{number}))
	{
		last if $select->can_read(0.1) && !sysread($state->{client}, my $ignored, CHUNK);
	}
	return;
}

sub frame
{
	my ($sequence, $payload) = @_;
	return substr(pack('V', length($payload)), 0, 3) . chr($sequence & 255) . $payload;
}

sub random_bytes { my ($n) = @_; return join('', map { chr(int(rand(256))) } 1 .. $n); }
sub cut { my ($bytes) = @_; return substr($bytes, 0, int(rand(length($bytes)))); }

sub event_header
{
	my ($type, $flags) = @_;
	return pack('VCVVVv', 0, $type, 61, 0, 0, $flags);
}

# An event (behind its zero byte) with a length and a checksum that fit: what is wrong is inside.
sub seal
{
	my ($packet) = @_;
	my $event = substr($packet, 1);
	substr($event, 9, 4) = pack('V', length($event) + 4);
	return "\0$event" . pack('V', crc32($event));
}

sub reseal { my ($packet) = @_; return seal(substr($packet, 0, -4)); }


1;
