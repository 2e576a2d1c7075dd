package CdcBridge::Proxy;

# A proxy before a server, on loopback, which carries bytes faithfully until it is told otherwise.
#
#   my $proxy = CdcBridge::Proxy->new(upstream => $source);
#   $proxy->stall;      # connections stay open and nothing moves in either direction, new ones are accepted and told nothing
#   $proxy->pass;       # everything that waited goes on
#   $proxy->cut(100);   # each connection is reset after 100 more bytes from the server; new ones pass
#   $proxy->refuse;     # connections are reset, new ones too
#   $proxy->hold;       # it stands still itself, whatever it is doing, and takes no order before
#   $proxy->release;
#   print $proxy->connections;      # how many were accepted

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until reap slurp);
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);

use constant { CHUNK => 1 << 16, LOOK => 0.05 };

sub new
{
	my ($class, %option) = @_;
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 50) or die "listen: $!\n";
	my $self = bless { dir => new_folder('proxy'), upstream => $option{upstream}, number => 0, port => $listen->sockport, owner => $$ }, $class;
	$self->_order('pass');
	$self->{pid} = fork() // die "fork: $!\n";
	if (!$self->{pid})
	{
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
		$SIG{PIPE} = 'IGNORE';
		eval { $self->_serve($listen); };
		POSIX::_exit(0);
	}
	close($listen);
	return $self;
}

sub host { return '127.0.0.1'; }
sub port { return $_[0]{port}; }
sub pass { return $_[0]->_order('pass'); }
sub stall { return $_[0]->_order('stall'); }
sub refuse { return $_[0]->_order('refuse'); }
sub cut { return $_[0]->_order('cut', $_[1] // 0); }
sub hold { kill('STOP', $_[0]{pid}) or die "hold: $!\n"; return $_[0]; }
sub release { kill('CONT', $_[0]{pid}) or die "release: $!\n"; return $_[0]; }
sub connections { return -s "$_[0]{dir}/accepted" // 0; }

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;
	kill('KILL', $pid);
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

sub _order
{
	my ($self, $what, $bytes) = @_;
	$self->{number}++;
	open(my $out, '>', "$self->{dir}/new") or die "order: $!\n";
	print $out "$self->{number} $what " . ($bytes // 0) . "\n";
	close($out) or die "order: $!\n";
	rename("$self->{dir}/new", "$self->{dir}/order") or die "order: $!\n";
	return $self if $self->{number} == 1;
	poll_until(sub { return (slurp("$self->{dir}/taken") || 0) >= $self->{number}; }) or die "the proxy does not listen\n";
	return $self;
}

# ---- in the proxy's process

sub _end
{
	my ($pair) = @_;
	close($_) for @$pair{qw(client server)};
	$pair->{gone} = 1;
	return;
}

sub _reset
{
	my ($pair) = @_;
	setsockopt($_, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0)) for @$pair{qw(client server)};
	return _end($pair);
}

sub _serve
{
	my ($self, $listen) = @_;
	my ($taken, $what, @pairs) = (0, 'pass');
	while (getppid() == $self->{owner})
	{
		my ($number, $order, $bytes) = slurp("$self->{dir}/order") =~ /^(\d+) (\w+) (\d+)/;
		if ($number != $taken)
		{
			($taken, $what) = ($number, $order);
			if ($order eq 'refuse') { _reset($_) for @pairs; }
			if ($order eq 'cut') { $_->{left} = $bytes for @pairs; $what = 'pass'; }
			open(my $out, '>', "$self->{dir}/taken") or die; print $out $taken; close($out);
		}
		@pairs = grep { !$_->{gone} } @pairs;
		my $select = IO::Select->new($listen, $what eq 'stall' ? () : map { @$_{qw(client server)} } @pairs);
		for my $socket ($select->can_read(LOOK))
		{
			if ($socket == $listen) { $self->_accept($listen, $what, \@pairs); next; }
			my ($pair) = grep { $_->{client} == $socket || $_->{server} == $socket } @pairs;
			_carry($pair, $socket) unless $pair->{gone};
		}
	}
	return;
}

sub _accept
{
	my ($self, $listen, $what, $pairs) = @_;
	my $client = $listen->accept or return;
	open(my $count, '>>', "$self->{dir}/accepted") or die; print $count '.'; close($count);
	my $server = $what eq 'refuse' ? undef
	  : IO::Socket::INET->new(PeerAddr => $self->{upstream}->host, PeerPort => $self->{upstream}->port, Proto => 'tcp');
	if (!$server)
	{
		setsockopt($client, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0));
		close($client);
		return;
	}
	push @$pairs, { client => $client, server => $server };
	return;
}

sub _carry
{
	my ($pair, $from) = @_;
	my $from_server = $from == $pair->{server};
	my $to = $from_server ? $pair->{client} : $pair->{server};
	my $n = sysread($from, my $bytes, CHUNK);
	return _reset($pair) if !defined $n;
	# a side that has closed is passed on as that, not as a reset, which may overtake the last bytes
	return _end($pair) if !$n;
	if ($from_server && defined $pair->{left})
	{
		$bytes = substr($bytes, 0, $pair->{left}) if length($bytes) > $pair->{left};
		$pair->{left} -= length($bytes);
	}
	while ($bytes ne '')
	{
		my $sent = syswrite($to, $bytes);
		return _reset($pair) unless defined $sent;
		substr($bytes, 0, $sent) = '';
	}
	_reset($pair) if $from_server && defined $pair->{left} && $pair->{left} == 0;
	return;
}

1;
